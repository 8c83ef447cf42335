import pytest

from events.carriers.dhl_unified import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_documented_code_of_the_service_is_read_and_any_other_by_its_category() -> None:
    said = normalized(CARRIER, "push_two_services.json")

    assert told(said) == [
        ("4400112233", "delivered/OK", "delivered", "2026-03-04T09:12:00+01:00"),
        ("4400112233", "transit/WC", "out_for_delivery", "2026-03-04T08:01:00+01:00"),
        ("4400112233", "transit/WC", "out_for_delivery", "2026-03-04T08:01:00+01:00"),
        ("4400112233", "failure/CUSTOMS_STATUS_NEW", "exception", "2026-03-03T22:30:00+01:00"),
        ("0034099900000000001", "transit/NOT_IN_ANY_LIST", "in_transit", "2026-03-05T10:00:00+01:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, False, False, True, True]
    assert said.rejections == ()


def test_scans_of_two_pieces_at_one_moment_stay_apart() -> None:
    assert [reading.piece for reading in normalized(CARRIER, "push_two_services.json").readings] == [None, "JD01", "JD02", None, None]


def test_the_signer_belongs_to_the_delivery_and_the_estimate_to_the_newest_scan_of_an_open_shipment() -> None:
    said = normalized(CARRIER, "push_two_services.json")

    assert [reading.signed_by for reading in said.readings] == ["Ina Example", None, None, None, None]
    assert [reading.estimated_delivery for reading in said.readings] == [None, None, None, None, "2026-03-06T14:00:00+01:00"]


def test_the_rollup_speaks_only_where_there_are_no_scans_and_its_z_is_local_time() -> None:
    (reading,) = normalized(CARRIER, "push_one_without_scans.json").readings

    assert (reading.raw.code, reading.status, reading.time.instant.isoformat()) == (
        "pre-transit",
        "info_received",
        "2026-07-01T06:00:00+02:00",
    )
    assert reading.time.tz_source is TzSource.LOCATION


def test_members_that_are_no_scans_are_rejected_and_the_rest_is_read() -> None:
    said = normalized(CARRIER, "answer_odd_members.json")

    assert told(said)[:2] == [
        ("X1", "unknown", "info", "2026-01-02T03:04:05+00:00"),
        ("X1", "SOMETHING", "unmapped", "2026-01-02T03:04:06+00:00"),
    ]
    held = said.readings[2]
    assert (held.reason, held.time.tz_source, held.place) == (Reason.CUSTOMS_HOLD, TzSource.RECEIVED, NOWHERE)
    assert [rejection.pointer for rejection in said.rejections] == [
        "/shipments/0",
        "/shipments/1/events/0",
        "/shipments/1/events/1",
        "/shipments/1/events/2",
    ]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"title": "No result found", "status": 404}', b'{"shipments": null}'])
def test_answers_without_shipments_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"7", b'{"parcels": []}', b'"text"'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
