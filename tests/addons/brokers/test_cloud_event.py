"""Notifications as CloudEvents, read back by the CloudEvents SDK."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

from statesvc.addons.brokers import jetstream
from statesvc.addons.brokers.kit import CloudEvent, cloud_event
from statesvc.delivery.outgoing import Outgoing

SHIPMENT = "5d2f0f9a-2d8c-4a44-9d0e-6f4b7f3f0a11"
DATA = {"type": "shipment.status_changed", "data": {"to": "delivered"}}
SIGNATURE = {
    "webhook-id": "n1-7",
    "webhook-timestamp": "1772377500",
    "webhook-signature": "v1,c2ln v1a,c2ln",
}
EXPECTED = {
    "specversion": "1.0",
    "id": "n1-7",
    "source": "/statesvc",
    "type": "shipment.status_changed",
    "subject": SHIPMENT,
    "time": datetime(2026, 3, 1, 15, 5, tzinfo=UTC),
    "partitionkey": SHIPMENT,
    "sequence": "0000000007",
    "datacontenttype": "application/json",
}


@pytest.fixture
def event() -> CloudEvent:
    outgoing = Outgoing(
        webhook_id="n1-7",
        type="shipment.status_changed",
        at=datetime(2026, 3, 1, 15, 5, tzinfo=UTC),
        subject=SHIPMENT,
        sequence=7,
        body=orjson.dumps(DATA),
        headers={
            **SIGNATURE,
            "content-type": "application/json",
            "user-agent": "statesvc-notifier",
        },
    )
    return cloud_event(outgoing, source="/statesvc")


def without_signature(headers: dict[str, Any]) -> dict[str, Any]:
    assert {name: headers[name] for name in SIGNATURE} == SIGNATURE
    return {name: value for name, value in headers.items() if name not in SIGNATURE}


def test_for_nats_every_attribute_is_a_header_and_the_id_is_what_the_stream_dedupes_by(
    event: CloudEvent,
) -> None:
    headers = {name: unquote(value) for name, value in jetstream.headers_of(event).items()}
    assert headers.pop("Nats-Msg-Id") == "n1-7"
    read = {name.removeprefix("ce-"): value for name, value in without_signature(headers).items()}
    assert datetime.fromisoformat(read.pop("time")) == EXPECTED["time"]
    assert read == {name: value for name, value in EXPECTED.items() if name != "time"}


def test_sequences_sort_as_text_as_they_do_as_numbers() -> None:
    outgoing: dict[str, Any] = {
        "webhook_id": "n1",
        "type": "t",
        "at": datetime.now(UTC),
        "subject": SHIPMENT,
        "body": b"{}",
        "headers": SIGNATURE,
    }
    numbers = [1, 2, 9, 10, 11, 99, 100, 2**31 - 1]
    sequences = [
        cloud_event(Outgoing(**outgoing, sequence=number), source="s").attributes["sequence"]
        for number in numbers
    ]
    assert sequences == sorted(sequences)
    assert [int(text) for text in sequences] == numbers
    assert "sequence" not in cloud_event(Outgoing(**outgoing), source="s").attributes
