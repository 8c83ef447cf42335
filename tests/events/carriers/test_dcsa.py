import pytest

from events.carriers.dcsa import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.identity import identify
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_each_event_is_told_of_what_it_is_about() -> None:
    said = normalized(CARRIER, "events.json")

    assert told(said) == [
        ("BL-1", "TRANSPORT/DEPA/ACT", "in_transit", "2026-02-01T10:00:00+08:00"),
        ("BL-2", "TRANSPORT/DEPA/ACT", "in_transit", "2026-02-01T10:00:00+08:00"),
        ("APZU0000001", "EQUIPMENT/DISC/EST", "info", "2026-02-20T10:00:00+00:00"),
        ("APZU0000001", "EQUIPMENT/GTOT/ACT", "info", "2026-01-20T10:00:00+00:00"),
        ("BKG1", "SHIPMENT/CONF/ACT", "info_received", "2026-11-21T12:00:00+00:00"),
        ("APZU0000001", "EQUIPMENT/LOAD/ACT", "correction", "2026-01-21T10:00:00+00:00"),
        (None, "SHIPMENT/NEWW/ACT", "unmapped", "2026-01-19T10:00:00+01:00"),
    ]
    assert said.readings[2].time.tz_source is TzSource.ASSUMED_UTC
    assert [rejection.pointer for rejection in said.rejections] == ["/events/7", "/events/6"]


def test_one_event_id_is_an_id_of_each_shipment() -> None:
    readings = normalized(CARRIER, "events.json").readings
    ids = [identify(reading, carrier_id="dcsa", digest=bytes, allow_unnumbered=True).event_id for reading in readings]
    assert ids[:3] == ["e-1@BL1", "e-1@BL2", "e-1@APZU0000001"]
    assert readings[5].corrects == "e-0@APZU0000001"


def test_a_location_code_gives_the_country_and_with_the_terminal_the_facility() -> None:
    where = normalized(CARRIER, "events.json").readings[0].place
    assert (where.country, where.facility) == ("SG", "SGSIN PSAT")


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"events": []}', b'{"statusCode": 404, "errors": []}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
