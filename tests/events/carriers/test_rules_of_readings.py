"""Rules that hold for every carrier, over all fixtures with another text, year or offset in them.

Without the rules 68 of 91 readers believe the code against its text, 90 date scans in 1969, and 33
of 42 that read a local time from one member ignore an offset beside it.
"""

import re
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Reading
from events.text_proposals import stated_status
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import fixture_paths, read

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
LOCAL: Final = {TzSource.CARRIER_DEFAULT, TzSource.ASSUMED_UTC, TzSource.LOCATION}
OFFSET: Final = b"+13:45"


def readings(carrier_id: str, body: bytes) -> tuple[Reading, ...]:
    try:
        return read(CARRIERS[carrier_id], body).readings
    except UnreadableMessageError:
        return ()


def test_the_text_states_that_the_parcel_is_lost() -> None:
    assert stated_status(LOST) is Status.LOST


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


@pytest.mark.parametrize("carrier_id", OUR_CARRIERS)
def test_no_scan_is_dated_before_1990(carrier_id: str) -> None:
    dated = [
        f"{path.name}: {reading.time.printed}"
        for path in fixture_paths(carrier_id)
        for reading in readings(carrier_id, re.sub(rb"20[12]\d", b"1969", path.read_bytes()))
        if reading.time.instant.year < 1990
    ]
    assert dated == []


@pytest.mark.parametrize("carrier_id", OUR_CARRIERS)
def test_no_offset_that_is_printed_beside_a_local_time_is_ignored(carrier_id: str) -> None:
    ignored = []
    for path in fixture_paths(carrier_id):
        body = path.read_bytes()
        times = {
            one.time.printed: one.time.tz_source
            for one in readings(carrier_id, body)
            if one.time.precision is not TimePrecision.DAY
        }
        for printed in (each for each, source in times.items() if source in LOCAL):
            with_offset = beside(body, printed, b"eventZoneOffset", OFFSET)
            if with_offset is None or len(readings(carrier_id, with_offset)) < 1:
                continue
            read_anew = read(CARRIERS[carrier_id], with_offset)
            if not read_anew.rejections and all(
                one.time.instant.strftime("%z") != "+1345"
                for one in read_anew.readings
                if one.time.printed == printed
            ):
                ignored.append(f"{path.name}: {printed}")
    assert ignored == []


def beside(body: bytes, printed: str, name: bytes, value: bytes) -> bytes | None:
    """Put a member beside the one that prints a time in JSON; None where no member prints it
    as it is, or several do.
    """
    member = re.compile(rb'"[^"]+"\s*:\s*"' + re.escape(printed.encode()) + rb'"')
    if len(found := member.findall(body)) != 1:
        return None
    return body.replace(found[0], found[0] + b', "' + name + b'": "' + value + b'"')
