import pytest

from events.carriers.aftership import CARRIER
from events.carriers.carrier import Hmac
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_subtag_decides_and_an_unknown_one_leaves_its_tag_standing() -> None:
    said = normalized(CARRIER, "webhook_stringified.json")

    assert told(said) == [
        ("AS0000000001", "InTransit_002", "picked_up", "2026-02-02T09:00:00-08:00"),
        ("AS0000000001", "Exception_099/X9", "exception", "2026-02-03T09:00:00+01:00"),
        ("AS0000000001", "Delivered_003/01", "delivered", "2026-02-04T09:00:00+01:00"),
        ("AS0000000001", None, "unmapped", "2026-02-04T07:00:00+00:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, True, False, False]
    assert [rejection.pointer for rejection in said.rejections] == ["/msg/checkpoints/5", "/msg/checkpoints/4"]


def test_a_local_time_takes_the_zone_of_its_place() -> None:
    said = normalized(CARRIER, "webhook_stringified.json")
    assert [reading.time.tz_source for reading in said.readings[:3]] == [TzSource.LOCATION, TzSource.EXPLICIT, TzSource.LOCATION]


def test_the_signer_belongs_to_the_delivery() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "webhook_stringified.json").readings] == [None, None, "P SAMPLE", None]


def test_a_tag_without_checkpoints_speaks_only_where_it_says_something() -> None:
    said = normalized(CARRIER, "page_without_checkpoints.json")

    assert told(said) == [
        ("AS1", "InfoReceived_001", "info_received", "2026-02-01T08:00:00+00:00"),
        ("AS4", "InTransit_003", "in_transit", "2026-02-01T08:30:00+00:00"),
    ]
    assert (said.readings[1].estimated_delivery, said.readings[1].stamp) == ("2026-02-09", "2026-02-01T09:00:00Z")


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"meta": {"code": 4004, "message": "-"}, "data": {}}', b'{"event": "x", "msg": null}'])
def test_errors_and_notices_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"[1]", b'{"hello": 1}', b"null"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_is_base64() -> None:
    assert CARRIER.authentication[0] == Hmac(header="aftership-hmac-sha256", encoding="base64")
