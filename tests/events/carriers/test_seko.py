import pytest

from events.carriers.seko import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_omnicode_decides_and_the_carriers_code_stands_beside_it() -> None:
    said = normalized(CARRIER, "two_consignments.json")

    assert told(said) == [
        ("900000000001", "OP-79/1.0", "in_transit", "2026-03-02T15:29:00+01:00"),
        ("900000000001", "OP-50/2.0", "in_transit", "2026-03-02T15:29:00+01:00"),
        ("900000000001", "OP-999", "unmapped", "2026-03-02T16:29:00.043000+00:00"),
        ("900000000001", "X9", "unmapped", "2026-03-02T17:29:00+01:00"),
        ("900000000002", "OP-72", "delivered", "2026-03-02T18:00:00+00:00"),
    ]
    assert [reading.piece for reading in said.readings] == ["1", "2", None, None, None]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"Message": "no"}', b'[{"ConsignmentNo": "1", "Events": null}]'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
