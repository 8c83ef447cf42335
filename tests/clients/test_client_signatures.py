"""`verify` takes what the service signs, and nothing else."""

import importlib
import json
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any, Final

import pytest
from standardwebhooks import Webhook

SECRET: Final = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
OTHER: Final = "whsec_YW5vdGhlciBzZWNyZXQ="
BODY: Final = json.dumps({"type": "shipment.status_changed", "data": {"to": "delivered"}}).encode()


@pytest.fixture
def package(installed_client: Path) -> Any:
    assert installed_client.is_dir()
    return importlib.import_module("statesvc_client")


def signed(*, at: datetime | None = None, secret: str = SECRET) -> dict[str, str]:
    stamp = at or datetime.now(UTC)
    signature = Webhook(secret).sign("n1-abc", stamp, BODY.decode())
    return {
        "Webhook-Id": "n1-abc",
        "Webhook-Timestamp": str(int(stamp.timestamp())),
        "Webhook-Signature": signature,
    }


def test_a_signed_notification_is_read(package: Any) -> None:
    assert package.verify(SECRET, signed(), BODY) == json.loads(BODY)
    assert package.verify([OTHER, SECRET], signed(), BODY.decode()) == json.loads(BODY)


def test_headers_are_taken_as_the_standard_library_has_them(package: Any) -> None:
    headers = Message()
    for name, value in signed().items():
        headers[name] = value
    assert package.verify(SECRET, headers, BODY) == json.loads(BODY)


@pytest.mark.parametrize(
    ("changed", "body", "reason"),
    [
        ({"secret": OTHER}, BODY, "no signature is of this secret"),
        ({}, BODY + b" ", "no signature is of this secret"),
        ({"age": timedelta(hours=1)}, BODY, "away from this machine's clock"),
        ({"Webhook-Timestamp": "yesterday"}, BODY, "not a number"),
        ({"Webhook-Timestamp": None}, BODY, "webhook-timestamp is missing"),
        ({"Webhook-Signature": ""}, BODY, "no signature is of this secret"),
    ],
)
def test_anything_else_is_refused_with_its_reason(
    package: Any, changed: dict[str, Any], body: bytes, reason: str
) -> None:
    at = datetime.now(UTC) - changed.pop("age", timedelta())
    headers: dict[str, Any] = signed(at=at, secret=changed.pop("secret", SECRET)) | changed
    with pytest.raises(package.InvalidSignatureError, match=reason):
        package.verify(
            SECRET, {name: value for name, value in headers.items() if value is not None}, body
        )
