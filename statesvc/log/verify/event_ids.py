"""What an entry's clear part gives again: whose event it is, its derived id, the facts behind an id of the carrier's, its aliases.

Computed by the recipes themselves, from nothing but the canonical bytes. What takes the digest key needs a master key; what follows from a
sealed value is counted as unchecked.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from psycopg import Connection

from events.carriers import canonical
from events.clear_part import Digest
from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealError
from events.identity import ENRICHMENT, enrichment_id, shipment_id, stated_facts, value_digest
from events.recipe import DERIVED, needs_text, rederived_id, stated_in
from events.recipes import derives, number_of, recipe_of
from statesvc.database.keyring_store import SQL as KEYRING
from statesvc.database.keyring_store import service_context

Digests: TypeAlias = Callable[[str], Digest]
"""The digest of each carrier by its id."""
Document: TypeAlias = Mapping[str, Any]

_CORRECTION: Final = "c1-"
_VERSIONS: Final = 2**31
FACTS: Final = "facts behind ids of the carriers' own: they take the digest key"
ESTIMATES: Final = "ids of estimates that scans carry: they take the digest key"
SIGNERS: Final = "ids of signers that scans carry, who are sealed"
CORRECTIONS: Final = "ids of our own corrections"
OTHER_ANCHORS: Final = "ids of values that came with another id of their scan"
TEXTS: Final = "aliases by a text that is sealed"


def read_digests(connection: Connection[Any], master: MasterKeys | None) -> Digests | None:
    """None: without a master key, or with one that does not open the digest key."""
    if master is None:
        return None
    found = {name: bytes(sealed) for name, sealed in connection.execute(KEYRING["read_keys"], binary=True)}
    try:
        keys = {name: master.unwrap(sealed, service_context(name)) for name, sealed in found.items()}
        return Keyring(master=master, digest_key=keys["digest"].key, inbox=keys["inbox"]).carrier_digest
    except (SealError, KeyError):
        return None


class EventIds(NamedTuple):
    """What an event's entry gives. `fault`: which field is not what follows from the others, and why."""

    carrier_id: str
    event_id: str
    shipment_id: str
    facts: bytes | None
    """Empty for an id of ours; None where they were not computed."""
    aliases: tuple[str, ...]
    fault: tuple[str, str] | None
    unchecked: tuple[str, ...]
    version: int


def event_ids(content: bytes, digests: Digests | None) -> EventIds:
    """Of an event's canonical bytes. Raises ValueError for what is no event."""
    try:
        return _event_ids(orjson.loads(content), digests)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no event of a known format") from error


def conflict_fault(content: bytes, digests: Digests | None) -> tuple[str, str] | None:
    """What a conflict states that does not follow from the rest of it. Raises ValueError for what is no conflict."""
    try:
        document = orjson.loads(content)
        if not _is_whose(document, document["claimed_shipment_id"]):
            return "claimed_shipment_id", "is not the id of its carrier, number and discriminator"
        if digests is not None and _facts(document, digests).hex() != document["facts_digest"]:
            return "facts_digest", "is not that of what it states"
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no conflict of a known format") from error
    return None


def _event_ids(document: Document, digests: Digests | None) -> EventIds:
    event_id: str = document["event_id"]
    if not 0 < document["version"] < _VERSIONS:
        raise ValueError("no version of an event")
    unchecked = []
    fault: tuple[str, str] | None = None
    facts: bytes | None = b""
    if not _is_whose(document, document["shipment_id"]):
        fault = "shipment_id", "is not the id of its carrier, number and discriminator"
    if event_id.startswith(DERIVED):
        if not derives(document):
            fault = "event_id", "is not the one that follows from what the event states"
    elif event_id.startswith(ENRICHMENT):
        why, missing = _enrichment(document, digests)
        fault = fault or why
        unchecked += [missing] if missing else []
    elif event_id.startswith(_CORRECTION):
        unchecked.append(CORRECTIONS)
    elif digests is None:
        facts = None
        unchecked.append(FACTS)
    else:
        facts = _facts(document, digests)
    aliases, unread = _aliases(document)
    unchecked += [TEXTS] * unread
    return EventIds(document["carrier_id"], event_id, document["shipment_id"], facts, aliases, fault, tuple(unchecked), document["version"])


def _is_whose(document: Document, wanted: str) -> bool:
    carrier_id = document["carrier_id"]
    number = number_of(carrier_id, document["tracking_number"])
    return str(shipment_id(carrier_id, number, document["discriminator"])) == wanted


def _derived(document: Document) -> tuple[str, ...]:
    recipe = recipe_of(document["carrier_id"])
    return tuple(rederived_id(each, document) for each in (recipe, *recipe.also))


def _facts(document: Document, digests: Digests) -> bytes:
    recipe = recipe_of(document["carrier_id"])
    return stated_facts(recipe, stated_in(document, recipe), digests(document["carrier_id"]))


def _enrichment(document: Document, digests: Digests | None) -> tuple[tuple[str, str] | None, str | None]:
    """A fault, or why it cannot be checked. An estimate stands in clear, a signer does not."""
    carrier_id, estimate = document["carrier_id"], document.get("estimated_delivery")
    if estimate is None:
        return None, SIGNERS
    if digests is None:
        return None, ESTIMATES
    value = value_digest(
        shipment_id=shipment_id(carrier_id, number_of(carrier_id, document["tracking_number"]), document["discriminator"]),
        field="estimated_delivery",
        value=estimate,
        stamp=document.get("stamp") or "",
        digest=digests(carrier_id),
    )
    if any(enrichment_id(anchor=each, value=value) == document["event_id"] for each in (document["anchor"], *_derived(document))):
        return None, None
    if recipe_of(carrier_id).also:
        return None, OTHER_ANCHORS
    return ("event_id", "is not the one that follows from its anchor and its estimate"), None


def _aliases(document: Document) -> tuple[tuple[str, ...], int]:
    """The further ids that a scan was given, and of how many that cannot be said."""
    recipe = recipe_of(document["carrier_id"])
    is_scan = document.get("anchor") is None and not document["event_id"].startswith(_CORRECTION)
    # an id that the sender itself chose has none
    if not recipe.also or not is_scan or document["normalizer"] == canonical.CARRIER_ID:
        return (), 0
    stated = [(each, stated_in(document, each)) for each in recipe.also]
    by_text = [each for each, said in stated if needs_text(each, said.raw) and said.text is None]
    known = (rederived_id(each, document) for each, _ in stated if each not in by_text)
    return tuple(each for each in dict.fromkeys(known) if each != document["event_id"]), len(by_text)
