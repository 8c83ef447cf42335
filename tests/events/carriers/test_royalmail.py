import pytest

from events.carriers.royalmail import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_category_reads_an_unknown_code_of_the_last_event_only() -> None:
    said = normalized(CARRIER, "pieces.json")

    assert told(said)[:2] == [
        ("FQ000000001GB", "EVZZZ", "in_transit", "2026-03-03T10:04:00+00:00"),
        ("FQ000000001GB", "EVZZZ", "unmapped", "2026-03-02T10:04:00+00:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [True, False, False]
    assert said.readings[0].estimated_delivery == "2026-03-05"


def test_a_summary_tells_its_last_event_and_a_signature_counts_for_a_delivery_only() -> None:
    said = normalized(CARRIER, "pieces.json")

    assert told(said)[2:] == [("0A2", "EVKSP", "delivered", "2026-07-03T10:04:00+01:00")]
    assert [reading.signed_by for reading in said.readings] == [None, None, "P Sample"]


@pytest.mark.parametrize("body", [b"{}", b'{"httpCode": "400", "errors": []}', b'{"mailPieces": {"mailPieceId": "1"}}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
