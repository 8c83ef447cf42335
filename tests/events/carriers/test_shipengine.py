import pytest

from events.carriers.carrier import RsaSha256
from events.carriers.shipengine import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_an_event_is_read_by_its_status_then_by_the_carriers_code_then_as_the_newest() -> None:
    said = normalized(CARRIER, "webhook.json")

    assert told(said) == [
        ("94000001", "Q7", "exception", "2026-03-04T20:00:00+00:00"),
        ("94000001", "07", "in_transit", "2026-03-03T20:00:00+00:00"),
        ("94000001", "OA", "picked_up", "2026-03-02T20:00:00+00:00"),
        ("94000001", "DE", "unmapped", "2026-03-01T20:00:00+00:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [True, False, False, False]
    assert said.readings[0].estimated_delivery == "2026-03-06"


@pytest.mark.parametrize(("status", "code", "what"), [("DE", "01", "delivered"), ("IT", None, "in_transit")])
def test_an_event_without_any_code_takes_the_shipments_only_where_it_stays_the_last(status: str, code: str | None, what: str) -> None:
    event = b'{"event_date": "2026-03-04T20:00:00Z", "description": "x"}'
    body = b'{"tracking_number": "1", "status_code": "%b", "carrier_status_code": "01", "events": ' + event + b"}"
    assert told(read(CARRIER, body % status.encode())) == [("1", code, what, "2026-03-04T20:00:00+00:00")]


@pytest.mark.parametrize(
    "body", [b"{}", b'{"resource_type": "BATCH", "data": {}}', b'{"errors": []}', b'{"tracking_number": "1", "status_code": "UN"}']
)
def test_messages_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_its_public_key_is_never_taken_for_a_token() -> None:
    assert [type(scheme) for scheme in CARRIER.authentication] == [RsaSha256]
