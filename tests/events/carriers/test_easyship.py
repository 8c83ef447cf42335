import pytest

from events.carriers.easyship import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_checkpoints_are_read_by_the_words_of_their_status() -> None:
    said = normalized(CARRIER, "checkpoints.json")

    assert told(said) == [
        ("ES0000000001", "Out for Delivery", "out_for_delivery", "2026-02-05T08:00:00+01:00"),
        ("ES0000000001", "Something New", "unmapped", "2026-02-04T08:00:00+00:00"),
    ]
    assert [rejection.pointer for rejection in said.rejections] == ["/data/checkpoints/2"]


def test_a_change_of_status_prints_no_time() -> None:
    said = read(CARRIER, b'{"event_type": "shipment.tracking.status.changed", "data": {"status": "failed_attempt", "tracking_number": 12}}')

    assert told(said) == [("12", "failed_attempt", "delivery_attempted", "2026-11-21T12:00:00+00:00")]
    assert said.readings[0].time.tz_source is TzSource.RECEIVED


@pytest.mark.parametrize("body", [b"{}", b'{"event_type": "shipment.label.created", "data": {"status": "success"}}'])
def test_other_webhooks_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
