"""The catalogue of notifications as documents: OpenAPI's `webhooks`, and AsyncAPI for brokers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from aiohttp import web

from events.entry.kinds import rfc3339
from statesvc.background.forking import forked_result
from statesvc.delivery.event_catalogue import EVENT_TYPES, EXAMPLE_AT, EventType
from statesvc.http.json_schemas import schemas_of
from statesvc.http.openapi import Hook
from statesvc.http.operation import Route, operation

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
_ATTRIBUTES: Final = {
    "specversion": "1.0",
    "id": "The `webhook-id`: drop what you had.",
    "source": "Which installation; `STATESVC_NOTIFIER_EVENT_SOURCE`.",
    "type": "As in the body.",
    "subject": "The shipment's id; of a test the subscription's.",
    "time": "When what it reports was recorded.",
    "partitionkey": "As `subject`: what is in order among itself.",
    "sequence": "Ten digits: `data.sequence`. Not in tests.",
}
# Prefix of the attributes of each broker, and its kind of address.
_BINDINGS: Final = {
    "nats": (
        "ce-",
        (
            "NATS JetStream: the subject of the subscription's URL. Values of headers are"
            " percent-encoded."
        ),
    ),
    "rabbitmq": (
        "cloudEvents_",
        "RabbitMQ: the exchange and routing key of the subscription's URL.",
    ),
    "kafka": ("ce_", "Kafka: the topic of the subscription's URL. The key is the shipment's id."),
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


def asyncapi_document(*, version: str) -> dict[str, Any]:
    """Build AsyncAPI 3.0: a channel for each kind of broker, a message for each type."""
    types = hooks()
    schemas, definitions = schemas_of((hook.data, "serialization") for hook in types)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "statesvc notifications",
            "version": version,
            "description": (
                "What a subscription whose URL names a broker receives: CloudEvents 1.0 in binary"
                " mode. That URL has the address, so this document has none."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {
            broker: {
                "address": None,
                "description": description,
                "messages": {
                    hook.name: {"$ref": f"#/components/messages/{broker}_{hook.name}"}
                    for hook in types
                },
            }
            for broker, (_, description) in _BINDINGS.items()
        },
        "operations": {
            f"notify_{broker}": {
                "action": "send",
                "channel": {"$ref": f"#/channels/{broker}"},
                "summary": "At least once each, those of a shipment in the order of `sequence`.",
            }
            for broker in _BINDINGS
        },
        "components": {
            "messages": {
                f"{broker}_{hook.name}": _message(hook, prefix)
                for broker, (prefix, _) in _BINDINGS.items()
                for hook in types
            },
            "schemas": {**definitions, **{hook.name: hook.schema(schemas) for hook in types}},
        },
    }


def _message(hook: Hook, prefix: str) -> dict[str, Any]:
    described = {**{prefix + name: text for name, text in _ATTRIBUTES.items()}, **SIGNED}
    return {
        "name": hook.kind,
        "title": hook.summary,
        "description": hook.description,
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "required": [name for name in described if name != f"{prefix}sequence"],
            "properties": {
                name: {"type": "string", "description": text} for name, text in described.items()
            },
        },
        "payload": {"$ref": f"#/components/schemas/{hook.name}"},
        "examples": [{"name": name, "payload": example} for name, example in hook.examples.items()],
    }


def routes(version: str) -> Sequence[Route]:
    document = forked_result(lambda: orjson.dumps(asyncapi_document(version=version)))

    async def asyncapi(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=document, content_type="application/json")

    return [
        Route(
            "GET",
            "/asyncapi.json",
            asyncapi,
            operation(
                operation_id="get_asyncapi",
                summary="Notifications by message brokers as AsyncAPI 3.0",
                scope=None,
                tag="documentation",
            ),
        )
    ]
