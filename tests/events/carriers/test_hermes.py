import pytest

from events.carriers.hermes import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_codes_keep_their_zeros_and_unknown_ones_are_unmapped() -> None:
    assert told(normalized(CARRIER, "two_shipments.json")) == [
        ("H0000000000000000011", "0000", "info_received", "2026-03-02T08:00:00+01:00"),
        ("H0000000000000000011", "4690", "correction", "2026-03-03T08:00:00+01:00"),
        ("H0000000000000000011", "0001", "unmapped", "2026-03-03T09:00:00+01:00"),
        ("H0000000000000000012", "3731", "delivery_attempted", "2026-03-04T08:00:00+01:00"),
    ]


def test_members_that_are_no_scans_are_rejected_where_they_stand() -> None:
    rejections = normalized(CARRIER, "two_shipments.json").rejections
    assert [rejection.pointer for rejection in rejections] == ["/shipmentinfo/0/status/3", "/shipmentinfo/0/status/4"]


def test_the_forecast_belongs_to_the_newest_scan() -> None:
    readings = normalized(CARRIER, "two_shipments.json").readings
    assert [reading.estimated_delivery for reading in readings] == ["2026-03-06", None, None, None]
    assert readings[1].time.tz_source is TzSource.LOCATION
    assert readings[3].reason is Reason.CONSIGNEE_ABSENT


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"message": "no"}', b'{"shipmentinfo": []}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
