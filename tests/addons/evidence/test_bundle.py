"""A bundle verifies with the log's public key alone, by two verifiers; altered anywhere, by
neither.
"""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from events.merkle.checkpoint import NoteSigner, VerifierKey
from events.spelling import normalize_number
from events.vocabulary import Status
from statesvc.addons.evidence.bundle import sealed
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.gather import (
    BundleRequest,
    GatheredEvidence,
    NothingSealedError,
    UnknownShipmentError,
    gather,
)
from statesvc.addons.evidence.verify_evidence import all_flaws, read_keys
from tests.world.log_builder import LogBuilder, log_builder, scan

NUMBER = "1Z0002"


async def gathered_of(
    log: LogBuilder,
    number: str = NUMBER,
    *,
    carrier_id: str = "ups",
    personal: bool = True,
    **wish: Any,
) -> GatheredEvidence:
    wanted = BundleRequest(
        carrier_id=carrier_id,
        number=normalize_number(number),
        discriminator=None,
        personal=personal,
        **wish,
    )
    return await gather(log.connection, wanted, log.keyring)


async def bundle_of(log: LogBuilder, number: str = NUMBER, **wish: Any) -> dict[str, Any]:
    return (await gathered_of(log, number, **wish)).sealed()


async def gathered(database: Any, *, personal: bool = True) -> dict[str, Any]:
    async with log_builder(database) as log:
        await log.everything()
        await log.append(
            scan(
                NUMBER,
                70,
                Status.DELIVERED,
                signed_by="J. Doe",
                delivery_address="Zanzibar Lane 77",
            )
        )
        await log.seal()
        return await bundle_of(log, personal=personal)


def keys_of(bundle: dict[str, Any]) -> list[VerifierKey]:
    return [VerifierKey.parse(key) for key in bundle["log"]["keys"]]


def resealed_by_a_stranger(changed: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """Seal again with a key that is listed as the log's: only the proofs can show it."""
    signer = NoteSigner.fresh(keys_of(original)[0].name)
    log = {**changed["log"], "keys": [*changed["log"]["keys"], str(signer.verifier)]}
    body = {name: value for name, value in changed.items() if name != "seal"} | {"log": log}
    return dict(sealed(body, [signer], origin=signer.verifier.name))


def both(bundle: dict[str, Any], keys: list[VerifierKey]) -> tuple[bool, bool]:
    """Return whether ours and the verifier in one file, which shares no code with it, accept it."""
    document = json.dumps(bundle, ensure_ascii=False).encode()
    return not check(document, keys), not all_flaws(
        json.loads(document), read_keys([str(key) for key in keys]), {}
    )


async def test_two_verifiers_accept_what_was_gathered(database: Any) -> None:
    bundle = await gathered(database)
    assert check(json.dumps(bundle).encode(), keys_of(bundle)) == []
    assert both(bundle, keys_of(bundle)) == (True, True)
    kinds = [entry["kind"] for entry in bundle["entries"]]
    assert {"event", "conflict", "transition"} <= set(kinds)
    assert bundle["shipment"]["signed_by"] == "J. Doe"


async def test_without_the_scope_nothing_personal_is_in_it_and_it_verifies_all_the_same(
    database: Any,
) -> None:
    bundle = await gathered(database, personal=False)
    assert both(bundle, keys_of(bundle)) == (True, True)
    assert "J. Doe" not in json.dumps(bundle)
    assert {entry["part_state"] for entry in bundle["entries"]} == {"withheld", "none"}


async def test_after_an_erasure_it_says_so_and_verifies(event_log: LogBuilder) -> None:
    await event_log.parcel(NUMBER)
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"))
    await event_log.connection.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = now()"
    )
    await event_log.seal()
    bundle = await bundle_of(event_log)
    assert both(bundle, keys_of(bundle)) == (True, True)
    assert bundle["shipment"]["erased"]
    assert {entry["part_state"] for entry in bundle["entries"]} == {"erased", "none"}


async def test_another_key_is_not_enough(database: Any) -> None:
    bundle = await gathered(database)
    other = NoteSigner.fresh(keys_of(bundle)[0].name).verifier
    assert both(bundle, [other]) == (False, False)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _places(member, (*path, name))
    elif isinstance(value, list) and value:
        for place, member in enumerate(value):
            yield from _places(member, (*path, place))
    else:
        yield path


def _altered(bundle: dict[str, Any], path: tuple[Any, ...], chance: Random) -> dict[str, Any]:
    changed = copy.deepcopy(bundle)
    holder: Any = changed
    for step in path[:-1]:
        holder = holder[step]
    value = holder[path[-1]]
    match value:
        case bool():
            holder[path[-1]] = not value
        case int():
            holder[path[-1]] = value + 1
        case str() if value:
            place = chance.randrange(len(value))
            holder[path[-1]] = value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
        case _:
            holder[path[-1]] = "something"
    return changed


@pytest.mark.slow
async def test_altered_in_any_field_neither_verifier_accepts_it(database: Any) -> None:
    bundle = await gathered(database)
    keys, chance = keys_of(bundle), Random(3)
    for path in _places(bundle):
        assert both(_altered(bundle, path, chance), keys) == (False, False), path
    for name in ("entries", "messages"):
        for place in range(len(bundle[name])):
            shorter = {**bundle, name: bundle[name][:place] + bundle[name][place + 1 :]}
            assert both(shorter, keys) == (False, False), (name, place)


async def test_a_resealed_bundle_still_cannot_change_what_the_log_holds(database: Any) -> None:
    # a forger of the seal still has no proof for another entry
    bundle = await gathered(database)
    entries, shipment = bundle["entries"], bundle["shipment"]
    place = next(place for place, entry in enumerate(entries) if entry["part"])

    def with_entry(**changed: Any) -> dict[str, Any]:
        return {"entries": [*entries[:place], entries[place] | changed, *entries[place + 1 :]]}

    for why, changed in {
        "its hash is another": with_entry(canonical=entries[place]["canonical"] + " "),
        "is missing, or was changed": with_entry(leaf_hash="00" * 32),
        "it is not at this place of the signed log": with_entry(proof=[]),
        "it is of another kind": with_entry(kind="attempt"),
        "its personal part is not the one": with_entry(part="AAAA"),
        "an entry is repeated": {"entries": [*entries, entries[-1]]},
        "the last event of the shipment is missing": {"shipment": shipment | {"version": 0}},
        "an event of another carrier": {"shipment": shipment | {"carrier_id": "dhl"}},
        "the last conclusion in the log is": {"shipment": shipment | {"status": "lost"}},
        "its body is not the one": {"messages": [{"message_id": "x", "body": "AAAA"}]},
        "no event of the bundle came with": {"messages": [{"message_id": "x", "body": None}]},
        "is not the id of this carrier": {"shipment": shipment | {"discriminator": "x"}},
    }.items():
        resealed = resealed_by_a_stranger({**bundle, **changed}, bundle)
        flaws = check(json.dumps(resealed).encode(), keys_of(resealed))
        assert any(why in flaw.why for flaw in flaws), why
    forged = with_entry(canonical=entries[place]["canonical"].replace("Springfield", "Shelbyville"))
    resealed = resealed_by_a_stranger({**bundle, **forged}, bundle)
    assert forged != with_entry()
    assert both(resealed, keys_of(resealed)) == (False, False)


async def test_what_there_is_no_evidence_of_is_said(event_log: LogBuilder) -> None:
    await event_log.parcel(NUMBER)
    with pytest.raises(NothingSealedError):
        await bundle_of(event_log)
    await event_log.seal()
    with pytest.raises(UnknownShipmentError):
        await bundle_of(event_log, "1ZNOBODY")
