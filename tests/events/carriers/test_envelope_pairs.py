"""Ids of scans: alike in two envelopes, computed again from the leaf alone, and golden for ever."""

import hmac
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from events.carriers import CARRIERS
from events.clear_part import clear_raw, known_texts, restored
from events.entry.kinds import Provenance, event_document
from events.entry.proposal import DedupeKey, ExistingEvent, Proposal, decide, keys_of
from events.errors import UnreadableMessageError
from events.event import Event, Reading
from events.identity.ids import identify
from events.identity.recipe import rederived_id
from events.identity.recipes import RECIPES, recipe_of
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status, Verdict
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.envelope_pairs import Pair
from tests.events.carriers.golden import released_changes
from tests.events.carriers.more_envelope_pairs import PAIRS

FILE: Final = Path(__file__).parent / "envelope_pair_ids.json"
NOW: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SOURCE: Final = Provenance(
    message_id=UUID(int=1),
    body_commitment=bytes(32),
    received_at=NOW,
    normalizer="x",
    normalizer_version="1",
)
BY_NAME: Final = {f"{pair.carrier_id}/{pair.name}": pair for pair in PAIRS}


def digest(data: bytes) -> bytes:
    return hmac.digest(b"golden", data, "sha256")


def events(carrier_id: str, body: bytes) -> list[Event]:
    normalized = read(CARRIERS[carrier_id], body)
    assert normalized.rejections == ()
    return [
        identify(reading, carrier_id=carrier_id, digest=digest) for reading in normalized.readings
    ]


def proposals(found: list[Event]) -> list[Proposal]:
    return [Proposal(event=event, signer_digest=None, source=SOURCE, message=0) for event in found]


def ids(pair: Pair) -> list[list[str]]:
    return [
        [event.event_id, *event.aliases]
        for body in (pair.one, pair.other)
        for event in events(pair.carrier_id, body)
    ]


def test_the_same_scan_in_another_envelope_is_a_duplicate() -> None:
    for name, pair in BY_NAME.items():
        one, other = (proposals(events(pair.carrier_id, body)) for body in (pair.one, pair.other))
        assert one, name
        for first, second in ((one, other), (other, one)):
            decision = decide(first, {})
            assert decision.verdicts == [Verdict.APPENDED] * len(first), name
            known: dict[DedupeKey, ExistingEvent] = dict(
                [*keys_of(decision.appends), *decision.aliases]
            )
            assert decide(second, known).verdicts == [Verdict.DUPLICATE] * len(second), name
        assert {proposal.shipment_id for proposal in one} == {
            proposal.shipment_id for proposal in other
        }, name


def test_the_ids_of_a_pair_never_change() -> None:
    assert json.loads(FILE.read_text("utf-8")) == {
        name: ids(pair) for name, pair in BY_NAME.items()
    }


def test_every_carrier_has_a_recipe() -> None:
    assert RECIPES.keys() == CARRIERS.keys()


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_a_derived_id_is_computed_again_from_its_leaf_alone(carrier_id: str) -> None:
    bodies = [path.read_bytes() for path in fixture_paths(carrier_id)]
    bodies += [
        body for pair in PAIRS if pair.carrier_id == carrier_id for body in (pair.one, pair.other)
    ]
    for body in bodies:
        try:
            found = [
                reading
                for reading in read(CARRIERS[carrier_id], body).readings
                if reading.tracking_number
            ]
        except ValueError:
            continue
        for event in (identify(reading, carrier_id=carrier_id, digest=digest) for reading in found):
            if event.event_id.startswith("d1-"):
                assert (
                    rederived_id(recipe_of(carrier_id), json.loads(json.dumps(_document(event))))
                    == event.event_id
                )


def _document(event: Event) -> dict[str, Any]:
    document = event_document(
        event,
        source=SOURCE,
        shipment_id=UUID(int=1),
        version=1,
        recorded_at=NOW,
        previous_hash=bytes(32),
        part_commitment=None,
        signer_digest=None,
    )
    return {name: value for name, value in document.items() if value is not None}


def write() -> int:
    """Add the ids of new pairs; those that are there stay."""
    before = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    now = {name: ids(pair) for name, pair in BY_NAME.items()}
    if any(now.get(name) != found for name, found in before.items()):
        sys.stderr.write("event ids never change once they have landed\n")
        return 1
    FILE.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write())


def test_what_0_1_0_appended_is_a_duplicate_now() -> None:
    assert released_changes() == []


WITHOUT_CODES: Final = {"australiapost", "ics_courier"}
"""All that these say is text."""


def readings_of(carrier_id: str) -> Iterator[Reading]:
    """Yield the readings of all fixtures of a carrier, but for corrections, which are never read
    again.
    """
    for path in fixture_paths(carrier_id):
        try:
            normalized = read(CARRIERS[carrier_id], path.read_bytes())
        except UnreadableMessageError:
            continue
        yield from (
            reading for reading in normalized.readings if reading.kind is not Kind.CORRECTION
        )


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS))
def test_raw_fields_say_what_the_normalizer_read_or_nothing(carrier_id: str) -> None:
    reread = 0
    for reading in readings_of(carrier_id):
        carrier = CARRIERS[carrier_id]
        again = carrier.reread(reading.raw)
        clear = clear_raw(reading.raw, carrier_id, digest)
        assert (
            carrier.reread(restored(clear, known_texts(carrier.texts, carrier_id, digest))) == again
        ), "erased, it reads otherwise"
        if again is not None:
            reread += 1
            assert again == Meaning(
                reading.kind, reading.status, reading.reason, reading.by_category
            ), reading.raw
    assert (reread > 0) == (carrier_id not in WITHOUT_CODES)


OUR_CARRIERS: Final = sorted(CARRIERS.keys() - {"canonical"})
LOST: Final = "Lost in transit"
EXCLUDED: Final = {
    Status.DELIVERED,
    Status.RETURNING,
    Status.RETURNED,
    Status.CANCELLED,
    Status.DESTROYED,
    Status.EXCEPTION,
    Status.DELIVERY_ATTEMPTED,
}


def readings(carrier_id: str, body: bytes) -> tuple[Reading, ...]:
    try:
        return read(CARRIERS[carrier_id], body).readings
    except UnreadableMessageError:
        return ()


@pytest.mark.parametrize("carrier_id", OUR_CARRIERS)
def test_no_code_is_believed_against_a_text_that_excludes_its_status(carrier_id: str) -> None:
    believed = [
        f"{path.name}: {reading.raw} is {reading.status}"
        for path in fixture_paths(carrier_id)
        for text in {found.description for found in readings(carrier_id, path.read_bytes())}
        - {None}
        for reading in readings(
            carrier_id, path.read_bytes().replace(str(text).encode(), LOST.encode())
        )
        if reading.description == LOST
        and reading.kind is Kind.SCAN
        and (reading.raw.code or reading.raw.type)
        and reading.status in EXCLUDED
    ]
    assert believed == []


def test_no_scan_is_dated_before_1990() -> None:
    dated = [
        f"{carrier_id}/{path.name}: {reading.time.printed}"
        for carrier_id in OUR_CARRIERS
        for path in fixture_paths(carrier_id)
        for reading in readings(carrier_id, re.sub(rb"20[12]\d", b"1969", path.read_bytes()))
        if reading.time.instant.year < 1990
    ]
    assert dated == []
