import pytest

from events.carriers.geodis import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_pair_that_is_not_known_is_unmapped() -> None:
    said = normalized(CARRIER, "shipment.json")

    assert told(said) == [
        ("1G0000000001", "MLV/CFM", "out_for_delivery", "2026-02-06T07:14:00+01:00"),
        ("1G0000000001", "AAR/AVP", "unmapped", "2026-02-05T14:23:02+01:00"),
    ]
    assert (said.readings[0].place, said.readings[0].estimated_delivery) == (EventPlace(city="Lyon (FR)", facility="020037"), "2026-02-09")
    assert [rejection.pointer for rejection in said.rejections] == ["/contenu/listSuivis/2", "/contenu/listSuivis/3"]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"ok": false, "codeErreur": "x", "contenu": null}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
