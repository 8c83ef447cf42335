"""A try at a notification: body commitment, time, answer; and the sealed part that opens it. Pure.

The part holds the salt of the body, the body itself where it cannot be made again, and the
beginning of the response. It is sealed under the shipment's key: after `erase` the body cannot be
shown.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

import orjson

from events.crypto.sealing import SALT_BYTES, commitment, salted, unsalted
from events.entry.canonical_json import canonical_bytes
from events.entry.kinds import try_document
from projections.notification_type import NotificationType, is_of_operator
from statesvc.delivery.notification import Notification, QueuedNotification, body_of
from statesvc.delivery.outcome import RESPONSE_BYTES_MAX, Answer

Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """An attempt: the body sent, and the answer. The number of the attempt is that of `queued`."""

    queued: QueuedNotification
    answer: Answer
    started_at: datetime
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTry:
    """A try as recorded. `part` None: its shipment was erased meanwhile."""

    number: int
    started_at: datetime
    duration_ms: int
    outcome: str
    status_code: int | None
    body_commitment: bytes
    part: Part | None = field(repr=False)

    @classmethod
    def of(cls, attempt: DeliveryAttempt) -> Self:
        salted_body = salted(attempt.body, salt=public_salt(attempt.queued.notification))
        answer = attempt.answer
        return cls(
            number=attempt.queued.number,
            started_at=attempt.started_at,
            duration_ms=round(answer.duration_seconds * 1000),
            outcome=answer.outcome.value,
            status_code=answer.status_code,
            body_commitment=commitment(salted_body),
            part=part_of(
                salted_body[:SALT_BYTES],
                answer.response,
                answer.headers,
                stored_body=attempt.body if stores_body(attempt) else None,
            ),
        )

    def document(self) -> dict[str, Any]:
        return try_document(
            number=self.number,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            outcome=self.outcome,
            status_code=self.status_code,
            body_commitment=self.body_commitment,
        )


def public_salt(notification: Notification) -> bytes | None:
    """Return the salt for bodies about no shipment; None for others.

    There is no key for sealing a salt, and the log contains the whole content of the body.
    """
    kind = notification.type
    if kind != NotificationType.NEVER_HEARD and not is_of_operator(kind):
        return None
    return hashlib.sha256(b"statesvc public salt\x1f" + notification.webhook_id.encode()).digest()


def part_of(
    body_salt: bytes,
    response: bytes,
    headers: Sequence[tuple[str, str]] = (),
    *,
    stored_body: bytes | None = None,
) -> Part:
    """Return the salt of the body's commitment, the beginning of the response as text, and the
    body if `stores_body`.
    """
    part = {
        "body_salt": body_salt.hex(),
        "response": response[:RESPONSE_BYTES_MAX].decode("utf-8", "replace"),
        "headers": [[name, _text(value)] for name, value in headers],
    }
    return part if stored_body is None else part | {"body": stored_body.decode()}


def stores_body(attempt: DeliveryAttempt) -> bool:
    """Return whether the body is stored: a full body is, a thin one can be made again."""
    return attempt.body != body_of(replace(attempt.queued.notification, full=None))


def _text(value: str) -> str:
    """Replace non-UTF-8 bytes of a peer's header: aiohttp keeps them as lone surrogates."""
    return value.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Response:
    text: str = field(repr=False)
    headers: Sequence[tuple[str, str]] = field(repr=False)

    @classmethod
    def of(cls, part: Part) -> Self:
        return cls(part["response"], [(name, value) for name, value in part["headers"]])


@dataclass(frozen=True, slots=True)
class SentBody:
    """Opening of the commitment of a try to its body. `stored`: the body, where it was not thin."""

    salt: bytes = field(repr=False)
    stored: str | None = field(repr=False)

    @classmethod
    def of(cls, part: Part) -> Self:
        return cls(bytes.fromhex(part["body_salt"]), part.get("body"))


def ended_part(tries: Sequence[MadeTry], covered: Mapping[int, Sequence[MadeTry]]) -> bytes | None:
    """Return the part of a notification's entry: those of its tries, and by sequence of the
    notifications that end with it. None: none.
    """
    part: dict[str, Any] = {"tries": _numbered(tries)}
    if of_covered := [
        {"sequence": sequence, "tries": numbered}
        for sequence, made in covered.items()
        if (numbered := _numbered(made))
    ]:
        part["covers"] = of_covered
    return canonical_bytes(part) if part["tries"] or of_covered else None


def _numbered(tries: Sequence[MadeTry]) -> list[dict[str, Any]]:
    return [{"number": one.number, **one.part} for one in tries if one.part is not None]


def opened_part(salted_part: bytes) -> Part:
    """Parse a sealed part, of a try or of an entry."""
    part: Part = orjson.loads(unsalted(salted_part))
    return part


def parts_by_number(part: Part, sequence: int | None = None) -> dict[int, Part]:
    """Return the parts of an entry's own tries, or of those at the covered notification
    `sequence`.
    """
    if sequence is None:
        return {one["number"]: one for one in part["tries"]}
    return {
        one["number"]: one
        for covered in part.get("covers", ())
        if covered["sequence"] == sequence
        for one in covered["tries"]
    }
