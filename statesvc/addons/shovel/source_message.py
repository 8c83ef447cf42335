"""Messages of a broker: as they came, and their parts as Celery and kombu lay them out. Pure.

`Taken` is verbatim, for the backup and the way back. `Envelope` is the same message opened:
headers, payload and how it is encoded.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

import orjson
from pamqp.commands import Basic

from statesvc.addons.shovel.amqp_properties import read_properties

NO_HEADERS: Final[Mapping[str, Any]] = {}


class Transport(StrEnum):
    AMQP = "amqp"
    REDIS = "redis"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One message, verbatim. `properties`: in AMQP's wire format.

    `queue`: the queue or list that it waited in. `tag`: identifies it to its source; not part
    of the message.
    """

    transport: Transport
    queue: str
    body: bytes = field(repr=False)
    properties: bytes = field(default=b"", repr=False)
    exchange: str = ""
    routing_key: str = ""
    tag: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message's parts. `payload`: serialized by the producer.

    `message_id`: the producer's own id of a message that is not a task.
    """

    headers: Mapping[str, Any] = field(repr=False)
    payload: bytes = field(repr=False)
    content_type: str = "application/json"
    content_encoding: str = "utf-8"
    message_id: str = ""


class MalformedEnvelopeError(ValueError):
    """The message does not have its transport's layout. The text quotes none of it."""


def open_envelope(taken: Taken) -> Envelope:
    """Open an envelope. Raises MalformedEnvelopeError."""
    match taken.transport:
        case Transport.AMQP:
            return _from_amqp(taken.body, read_properties(taken.properties))
        case Transport.REDIS:
            return _from_redis(taken.body)
        case Transport.FILE:
            return _from_line(taken.body)


def _from_amqp(body: bytes, properties: Basic.Properties) -> Envelope:
    return Envelope(
        headers=properties.headers or NO_HEADERS,
        payload=body,
        content_type=properties.content_type or "application/json",
        content_encoding=properties.content_encoding or "utf-8",
        message_id=properties.message_id or "",
    )


def _from_redis(value: bytes) -> Envelope:
    """Parse kombu's layout: a JSON object with the payload in `body`.

    In base64 if `properties.body_encoding` is so.
    """
    document = _object(value)
    properties = document.get("properties")
    body = document.get("body")
    if not isinstance(properties, dict) or not isinstance(body, str):
        raise MalformedEnvelopeError(
            "has no `body` and `properties` as kombu writes them into Redis"
        )
    try:
        payload = (
            base64.b64decode(body, validate=True)
            if properties.get("body_encoding") == "base64"
            else body.encode()
        )
    except binascii.Error:
        raise MalformedEnvelopeError("its body is not the base64 that it says") from None
    headers = document.get("headers")
    return Envelope(
        headers=headers if isinstance(headers, dict) else NO_HEADERS,
        payload=payload,
        content_type=str(document.get("content-type") or "application/json"),
        content_encoding=str(document.get("content-encoding") or "utf-8"),
        message_id=str(properties.get("message_id") or ""),
    )


def _from_line(line: bytes) -> Envelope:
    """Parse a task in Celery's first layout (`task`, `id`, `args`, ...), or
    `{"body", "id", "headers", "eta", "content_type"}`.
    """
    document = _object(line)
    if "task" in document:
        return Envelope(headers=NO_HEADERS, payload=line)
    if "body" not in document:
        raise MalformedEnvelopeError("the line has neither `task` nor `body`")
    body, headers = document["body"], document.get("headers") or {}
    if not isinstance(headers, dict):
        raise MalformedEnvelopeError("its `headers` are no object")
    return Envelope(
        headers=headers | ({"eta": document["eta"]} if document.get("eta") else {}),
        payload=body.encode() if isinstance(body, str) else orjson.dumps(body),
        content_type=str(document.get("content_type") or "application/octet-stream"),
        message_id=str(document.get("id") or ""),
    )


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise MalformedEnvelopeError("is not JSON") from None
    if not isinstance(document, dict):
        raise MalformedEnvelopeError("is no JSON object")
    return document


class ShovelError(ValueError):
    """An error for the person at the terminal, with its remedy.

    No message of this batch was taken from the source.
    """


class SourceLostError(OSError):
    """The connection to the broker ended; unacknowledged messages wait there."""


class Source(Protocol):
    """Open before use. Every call may raise SourceLostError: then close, and open again."""

    async def open(self) -> None:
        """Open the source.

        Raises ShovelError where it can't be read, SourceLostError where it does not answer.
        """

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        """Take up to `limit` available messages; wait this long at most for the first."""

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Acknowledge the last batch; the source removes it."""

    async def waiting(self) -> int:
        """Count the messages there that no consumer has taken."""

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Return some of those that wait, without taking them. Before `take`, or not at all."""

    async def close(self) -> None:
        """Close; unacknowledged messages wait there again. Safe to call twice."""
