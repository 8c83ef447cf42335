import pytest

from events.carriers.sendle import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_answer_names_no_number() -> None:
    assert told(normalized(CARRIER, "delivered.json")) == [
        (None, "Pickup Attempted", "info", "2026-03-01T08:20:00+00:00"),
        (None, "Dropped Off", "picked_up", "2026-03-02T08:20:00+00:00"),
        (None, "Teleported", "unmapped", "2026-03-02T09:20:00+00:00"),
        (None, "Delivered", "delivered", "2026-03-03T08:20:00+00:00"),
        (None, "Info", "info", "2026-03-03T08:21:00+00:00"),
    ]


def test_the_sentence_after_the_delivery_tells_who_signed_it() -> None:
    readings = normalized(CARRIER, "delivered.json").readings
    assert [reading.signed_by for reading in readings] == [None, None, None, "P SAMPLE", None]
    assert readings[0].description == "We tried (Parcel not ready)"
    assert (readings[1].place.region, readings[1].place.country) == ("GA", "US")


def test_a_webhook_tells_one_event_with_its_number() -> None:
    said = normalized(CARRIER, "webhook_delivered.json")
    assert told(said) == [("S3ND73", "Delivered", "delivered", "2026-03-03T08:20:00+00:00")]
    assert said.readings[0].place == EventPlace(city="Sydney", region="NSW", country="AU")


@pytest.mark.parametrize("body", [b"{}", b'{"error": "not_found"}', b'{"state": "Booking", "tracking_events": []}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
