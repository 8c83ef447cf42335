import pytest

from events.carriers.roadie import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_signer_belongs_to_the_confirmed_delivery() -> None:
    said = normalized(CARRIER, "shipment.json")

    assert told(said) == [
        ("RSAMPLE1", "pickup_confirmed", "picked_up", "2026-03-02T10:38:43.467000+00:00"),
        ("RSAMPLE1", "delivery_confirmed", "delivered", "2026-03-02T12:00:00+00:00"),
        ("RSAMPLE1", "barrel_roll", "unmapped", "2026-03-02T11:00:00+00:00"),
    ]
    assert [reading.signed_by for reading in said.readings] == [None, "P SAMPLE", None]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"errors": []}', b'[{"tracking_number": "R1", "events": ""}]'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
