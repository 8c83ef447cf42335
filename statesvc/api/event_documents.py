"""The catalogue of notifications as the `webhooks` of OpenAPI."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from events.entry.kinds import rfc3339
from statesvc.delivery.event_catalogue import EVENT_TYPES, EXAMPLE_AT, EventType
from statesvc.http.openapi import Hook

SIGNED: Final = {
    "webhook-id": "Of this notification, the same at every attempt: drop what you had.",
    "webhook-timestamp": (
        "When this attempt was signed, in Unix seconds: refuse what is older than five minutes."
    ),
    "webhook-signature": (
        "`v1,` and base64 of HMAC-SHA256 over id, timestamp and raw body, joined by dots; `v1a,`"
        " with Ed25519. Several, separated by blanks, during a rotation."
    ),
}


def example_body(event_type: EventType, data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return orjson.loads(
        orjson.dumps({"type": event_type.kind, "timestamp": rfc3339(EXAMPLE_AT), "data": data})
    )


def examples(event_type: EventType) -> dict[str, Any]:
    """Return the examples by payload; a single example if all are the same."""
    found = {"thin": event_type.thin, "full": event_type.full}
    if event_type.thin == event_type.full:
        del found["full"]
    return {name: example_body(event_type, data) for name, data in found.items()}


def hooks() -> list[Hook]:
    """Return each type as a request that the service sends."""
    return [
        Hook(
            kind=each.kind,
            name=each.name,
            summary=each.summary,
            description=each.description,
            data=each.data,
            examples=examples(each),
            headers=SIGNED,
        )
        for each in EVENT_TYPES
    ]
