import pytest

from events.carriers.amazon import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_delivered_on_the_return_leg_means_returned() -> None:
    said = normalized(CARRIER, "shipping_returned.json")

    assert told(said) == [
        ("AMZ0000000001", "Delivered/RETURNS", "returned", "2026-03-05T10:00:00+00:00"),
        ("AMZ0000000001", "BrandNew/RETURNS", "unmapped", "2026-03-04T10:00:00.250000+00:00"),
        ("AMZ0000000001", "Delivered/FORWARD", "delivered", "2026-03-02T10:00:00+00:00"),
        ("AMZ0000000001", "PickupDone", "picked_up", "2026-03-01T10:00:00+00:00"),
    ]
    assert said.readings[3].time.tz_source is TzSource.LOCATION
    assert [rejection.pointer for rejection in said.rejections] == ["/payload/eventHistory/4"]


def test_the_receiver_signed_the_delivery_and_the_promise_is_no_event() -> None:
    said = normalized(CARRIER, "shipping_returned.json")
    assert [reading.signed_by for reading in said.readings] == [None, None, "P SAMPLE", None]
    assert {reading.estimated_delivery for reading in said.readings} == {None}


def test_a_milestone_in_an_sns_envelope_keeps_amazons_number_and_the_estimate() -> None:
    said = normalized(CARRIER, "milestones_sns.json")

    assert told(said) == [("AF1", "DELAYED/WEATHER", "exception", "2026-03-04T01:00:00+00:00")]
    assert said.readings[0].reason is Reason.DELAYED_CARRIER
    assert (said.readings[0].estimated_delivery, said.readings[0].stamp) == ("2026-03-07T03:00:00Z", "2026-03-04T01:05:00Z")


def test_the_rollup_speaks_only_where_there_are_no_events() -> None:
    said = read(CARRIER, b'{"trackingId": "T1", "eventHistory": null, "summary": {"status": "OutForDelivery"}}')
    assert told(said) == [("T1", "OutForDelivery", "out_for_delivery", "2026-11-21T12:00:00+00:00")]


@pytest.mark.parametrize("body", [b"{}", b'{"errors": [{"code": "NotFound"}]}', b'{"notificationType": "OTHER", "payload": {}}'])
def test_errors_and_other_notifications_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b'{"Message": "7"}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
