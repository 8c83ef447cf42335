from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from statesvc.addons.demo.subscriber import TOLERANCE_SECONDS, is_genuine

SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS10ZXN0cy0zMi1ieXRlcy1sb25n"
BODY = b'{"type": "shipment.status_changed"}'
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def signed() -> dict[str, str]:
    signature = Webhook(SECRET).sign("n1-1", AT, BODY.decode())
    return {
        "webhook-id": "n1-1",
        "webhook-timestamp": str(int(AT.timestamp())),
        "webhook-signature": f"v1,AAAA {signature}",
    }


def test_what_the_reference_library_signs_is_genuine() -> None:
    assert is_genuine(SECRET, signed(), BODY, now=AT.timestamp())


@pytest.mark.parametrize(
    ("changed", "body", "later"),
    [
        ({"webhook-id": "n1-2"}, BODY, 0),
        ({"webhook-signature": "v1,AAAA"}, BODY, 0),
        ({"webhook-timestamp": ""}, BODY, 0),
        ({}, BODY + b" ", 0),
        ({}, BODY, TOLERANCE_SECONDS + 1),
    ],
)
def test_anything_else_is_not(changed: dict[str, str], body: bytes, later: int) -> None:
    assert not is_genuine(SECRET, signed() | changed, body, now=AT.timestamp() + later)
