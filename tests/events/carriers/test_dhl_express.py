import pytest

from events.carriers.dhl_express import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_pieces_with_numbers_are_shipments_beside_their_waybill() -> None:
    said = normalized(CARRIER, "pi_pieces.xml")

    assert told(said) == [
        ("5500000011", "PU", "picked_up", "2026-02-10T17:05:00+00:00"),
        ("5500000011", "Q9", "unmapped", "2026-02-11T06:00:00+01:00"),
        ("JD0001", "OK", "delivered", "2026-02-12T11:00:00+00:00"),
        ("JD0002", "NH", "delivery_attempted", "2026-02-12T11:02:00+01:00"),
    ]
    assert said.readings[3].reason is Reason.CONSIGNEE_ABSENT


def test_a_signatory_is_believed_on_a_delivery_only() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "pi_pieces.xml").readings] == [None, None, "SILVA", None]


def test_a_service_area_gives_facility_city_and_country_where_its_name_holds_one() -> None:
    places = [reading.place for reading in normalized(CARRIER, "pi_pieces.xml").readings]

    assert places[:3] == [
        EventPlace(city="Lisbon", country="PT", facility="LIS"),
        EventPlace(city="Leipzig", country="DE", facility="LEJ"),
        EventPlace(city="Nowhere - Atlantis", facility="XYZ"),
    ]


def test_the_only_piece_of_a_waybill_is_the_waybill_and_tells_no_scan_twice() -> None:
    said = normalized(CARRIER, "mydhl_one_piece.json")

    assert told(said) == [
        ("7700000031", "PU", "picked_up", "2026-05-01T13:06:00-05:00"),
        ("7700000031", "UD", "exception", "2026-05-02T04:00:00+00:00"),
    ]
    assert [reading.time.tz_source for reading in said.readings] == [TzSource.EXPLICIT, TzSource.ASSUMED_UTC]
    assert [reading.estimated_delivery for reading in said.readings] == [None, "2026-05-03"]
    assert [reading.piece for reading in said.readings] == [None, None]


def test_the_json_twin_of_the_soap_answer_is_read_like_it() -> None:
    said = normalized(CARRIER, "soap_twin.json")
    assert told(said) == [
        ("6600000021", "PU", "picked_up", "2026-02-09T18:00:00+08:00"),
        ("6600000021", "AF", "in_transit", "2026-02-10T08:00:00+08:00"),
        ("6600000022", "OK", "delivered", "2026-02-11T09:30:00+08:00"),
    ]
    assert [reading.signed_by for reading in said.readings] == [None, None, "A SAMPLE"]


def test_soap_array_items_are_read_like_plain_elements() -> None:
    assert told(normalized(CARRIER, "soap_one_event.xml")) == [("6600000021", "AF", "in_transit", "2026-02-10T08:00:00+08:00")]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"status": 404, "title": "Not Found", "detail": "-"}',
        b"<r:ShipmentTrackingErrorResponse xmlns:r='http://www.dhl.com'><Response/></r:ShipmentTrackingErrorResponse>",
        b"<TrackingResponse><AWBInfo><AWBNumber/><Status><ActionStatus>none found</ActionStatus></Status></AWBInfo></TrackingResponse>",
    ],
)
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"<html><body>Bad gateway</body></html>", b"[1]", b'{"shipment": {}}'])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
