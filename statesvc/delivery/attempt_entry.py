"""Attempts as entries of the log: what we sent to a subscriber, when, and what came back, provable later.

The leaf binds commitments. What opens them (the salt of the body, the body itself where it can't be made again, and the beginning of the
response) is sealed under the shipment's key: after `erase` the log no longer shows which body it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
import structlog
from psycopg import AsyncConnection

from events.canonical_json import canonical_bytes
from events.crypto.keyring import Keyring, attempt_context
from events.crypto.sealing import SALT_BYTES, SealError, SealingKey, commitment, salted, unsalted
from events.entry import Leaf, attempt_document, leaf
from statesvc.database.pending import columns
from statesvc.database.queries import queries
from statesvc.delivery.notification import QueuedNotification, body_of
from statesvc.delivery.outcome import RESPONSE_BYTES_MAX, Answer
from statesvc.log.batch_row import Tick, write_batch

_SQL = queries("statesvc.delivery", "attempt_entry")
_COLUMNS = (
    *("shipment_ids", "sequences", "subscription_ids", "numbers", "started_ats", "webhook_ids", "outcomes", "status_codes"),
    *("durations_ms", "leaf_hashes", "canonicals", "sealed_parts"),
)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """What was sent, or left out, and how that ended. The number of the attempt is that of `queued`."""

    queued: QueuedNotification
    answer: Answer
    started_at: datetime
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt as the table holds it."""

    attempt: DeliveryAttempt
    duration_ms: int
    leaf: Leaf
    sealed_part: bytes | None = field(repr=False)


def attempt_part(body_salt: bytes, response: bytes, headers: Sequence[tuple[str, str]] = (), *, stored_body: bytes | None = None) -> bytes:
    """The part that is sealed: the salt of the body's commitment, the beginning of the response as text, and the body if `stores_body`."""
    part = {
        "body_salt": body_salt.hex(),
        "response": response[:RESPONSE_BYTES_MAX].decode("utf-8", "replace"),
        "headers": [[name, _text(value)] for name, value in headers],
    }
    return canonical_bytes(part if stored_body is None else part | {"body": stored_body.decode()})


def stores_body(attempt: DeliveryAttempt) -> bool:
    """A thin body is made again from its notification at any time; one that says more than that is stored as it was sent."""
    return attempt.body != body_of(replace(attempt.queued.notification, full=None))


def _text(value: str) -> str:
    """What a peer sent as a header need not be UTF-8: aiohttp keeps such bytes as lone surrogates."""
    return value.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Response:
    """What is stored of a subscriber's answer."""

    text: str = field(repr=False)
    headers: Sequence[tuple[str, str]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SentBody:
    """What opens the commitment of an attempt to its body. `stored`: the body, where it was not thin."""

    salt: bytes = field(repr=False)
    stored: str | None = field(repr=False)


def sent_body_of(salted_part: bytes) -> SentBody:
    """From an opened part, also one from before bodies were stored."""
    part = orjson.loads(unsalted(salted_part))
    return SentBody(bytes.fromhex(part["body_salt"]), part.get("body"))


def response_of(salted_part: bytes) -> Response:
    """From an opened part, also one from before headers were stored."""
    part = orjson.loads(unsalted(salted_part))
    return Response(part["response"], [(name, value) for name, value in part.get("headers", ())])


def _attempt_row(attempt: DeliveryAttempt, *, key: SealingKey | None, now: Tick) -> AttemptRow:
    """Commits to the body, seals what opens the commitment (nothing once the shipment is erased)."""
    queued, answer = attempt.queued, attempt.answer
    salted_body = salted(attempt.body)
    salt = salted_body[:SALT_BYTES]
    stored_body = attempt.body if stores_body(attempt) else None
    salted_part = salted(attempt_part(salt, answer.response, answer.headers, stored_body=stored_body))
    webhook_id = queued.notification.webhook_id
    duration_ms = round(answer.duration_seconds * 1000)
    document = attempt_document(
        webhook_id=webhook_id,
        subscription_id=queued.subscription_id,
        shipment_id=queued.shipment_id,
        sequence=queued.sequence,
        number=queued.number,
        started_at=attempt.started_at,
        recorded_at=now.recorded_at,
        duration_ms=duration_ms,
        outcome=answer.outcome.value,
        status_code=answer.status_code,
        body_commitment=commitment(salted_body),
        part_commitment=commitment(salted_part) if key else None,
    )
    context = attempt_context(queued.shipment_id, webhook_id, queued.number)
    return AttemptRow(
        attempt=attempt,
        duration_ms=duration_ms,
        leaf=leaf(document, epoch=now.epoch),
        sealed_part=None
        if key is None
        else key.seal(salted_part, context)
        if stored_body is None
        else key.seal_compressed(salted_part, context),
    )


def _values(rows: Sequence[AttemptRow]) -> list[tuple[object, ...]]:
    """The rows in the order of `_COLUMNS`."""
    return [
        (
            queued.shipment_id,
            queued.sequence,
            queued.subscription_id,
            queued.number,
            row.attempt.started_at,
            queued.notification.webhook_id,
            row.attempt.answer.outcome.value,
            row.attempt.answer.status_code,
            row.duration_ms,
            row.leaf.leaf_hash,
            row.leaf.canonical,
            row.sealed_part,
        )
        for row in rows
        for queued in (row.attempt.queued,)
    ]


async def record_attempts(
    connection: AsyncConnection[Any], keyring: Keyring, attempts: Sequence[DeliveryAttempt], *, now: Tick, worker: str
) -> None:
    """Appends them in their order, with the batch row of this transaction; writes nothing where there are none."""
    leaf_hashes = await append_attempts(connection, keyring, attempts, now=now)
    if leaf_hashes:
        await write_batch(connection, batch_id=now.batch_id, recorded_at=now.recorded_at, leaf_hashes=leaf_hashes, writer=worker)


async def append_attempts(
    connection: AsyncConnection[Any], keyring: Keyring, attempts: Sequence[DeliveryAttempt], *, now: Tick
) -> list[bytes]:
    """Appends them as the first entries of a batch. Returns their leaf hashes: the caller writes the batch row."""
    if not attempts:
        return []
    keys: dict[UUID, SealingKey | None] = {}
    for attempt in attempts:
        if attempt.queued.shipment_id not in keys:
            keys[attempt.queued.shipment_id] = _open(keyring, attempt.queued.sealed_key, attempt.queued.shipment_id)
    rows = [_attempt_row(attempt, key=keys[attempt.queued.shipment_id], now=now) for attempt in attempts]
    await connection.execute(
        _SQL["insert_attempts"], {"batch_id": now.batch_id, "recorded_at": now.recorded_at, **columns(_values(rows), _COLUMNS)}
    )
    return [row.leaf.leaf_hash for row in rows]


def _open(keyring: Keyring, sealed_key: bytes | None, shipment_id: UUID) -> SealingKey | None:
    if sealed_key is None:
        return None
    try:
        return keyring.open_shipment_key(sealed_key, shipment_id)
    except SealError as error:
        _log.error("shipment_key_unreadable", shipment_id=shipment_id, error=error)
        return None
