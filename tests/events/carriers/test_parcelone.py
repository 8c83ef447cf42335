import pytest

from events.carriers.parcelone import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_tracklmc_falls_back_on_the_tag_of_the_delivery_status() -> None:
    said = normalized(CARRIER, "tracklmc.json")

    assert told(said) == [
        ("4050000000001", "300/InTransit_003", "in_transit", "2026-03-02T08:00:00+01:00"),
        ("4050000000001", "999/OutForDelivery_777", "out_for_delivery", "2026-03-03T07:00:00+00:00"),
        ("4050000000001", "998/Other_001", "unmapped", "2026-03-03T09:00:00+01:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, True, False]
    first = said.readings[0]
    assert (first.description, first.place.city, first.place.country) == ("At the hub", "Bad Aibling", "DE")


def test_rest_tells_who_signed_once_for_the_shipment() -> None:
    said = normalized(CARRIER, "rest_delivered.json")

    assert told(said) == [
        ("100000000001", "DELIVERED", "delivered", "2026-03-04T14:30:00+01:00"),
        ("100000000001", "TELEPORTED", "unmapped", "2026-03-04T08:30:00+01:00"),
    ]
    assert [reading.signed_by for reading in said.readings] == ["P SAMPLE", None]


def test_soap_holds_any_number_of_shipments() -> None:
    assert told(normalized(CARRIER, "soap.xml")) == [("1", "ARRIVED", "in_transit", "2026-03-04T14:30:00+01:00")]


def test_the_rollup_speaks_only_where_there_are_no_scans() -> None:
    said = read(
        CARRIER, b'{"success": 1, "results": {"CarrierTrackingID": "LM1", "StatusCode": "DELIVERED", "DeliveryDate": "2026-03-04"}}'
    )
    assert told(said) == [("LM1", "DELIVERED", "delivered", "2026-03-04T00:00:00+01:00")]


@pytest.mark.parametrize(
    "body", [b"{}", b'{"success": 0, "message": "no"}', b'{"success": 1, "results": {"StatusCode": "UNKNOWN", "Events": []}}']
)
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"<html/>"])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
