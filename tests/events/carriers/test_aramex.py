import pytest

from events.carriers.aramex import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_updates_are_local_to_the_country_of_their_place_else_to_dubai() -> None:
    said = normalized(CARRIER, "soap_two_updates.xml")

    assert told(said) == [
        ("30000000001", "SH005", "delivered", "2026-02-03T16:20:00+03:00"),
        ("30000000001", "SH999/A15", "unmapped", "2026-02-03T09:00:00+04:00"),
    ]
    assert [reading.time.tz_source for reading in said.readings] == [TzSource.LOCATION, TzSource.CARRIER_DEFAULT]
    assert [reading.place for reading in said.readings] == [EventPlace(city="Amman", country="JO"), EventPlace(city="Depot")]


def test_the_json_twin_prints_epochs_and_names_the_waybill_in_its_key() -> None:
    said = normalized(CARRIER, "answer.json")

    assert told(said) == [("30000000002", "SH014", "info_received", "2026-02-03T09:00:00+00:00")]
    assert [rejection.pointer for rejection in said.rejections] == ["/TrackingResults/0/Value/1"]


@pytest.mark.parametrize("body", [b"{}", b'{"HasErrors": true, "Notifications": [{"Code": "ERR01"}]}', b"<ShipmentTrackingResponse/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"<html/>", b"1", b'{"hello": 1}'])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
