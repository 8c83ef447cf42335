"""Golden ids of events, readings again without the message, and the rules of readings."""

import hmac
import re
from collections.abc import Iterator
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.clear_part import clear_raw, known_texts, restored
from events.errors import UnreadableMessageError
from events.event import Reading
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.golden import released_changes


def test_what_0_1_0_appended_is_a_duplicate_now() -> None:
    assert released_changes() == []


WITHOUT_CODES: Final = {"australiapost", "ics_courier"}
"""All that these say is text."""


def digest(data: bytes) -> bytes:
    return hmac.digest(b"reread", data, "sha256")


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
