"""Entries about the ends of notifications with all their tries, and the tries before an end.

Until a notification ends, its tries are stored in `open_attempt`, unbound; then its entry includes
them. The leaf binds commitments; their openings are sealed under the shipment's key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

import orjson
import structlog

from events.crypto.keyring import Keyring, attempt_context, ended_context
from events.crypto.sealing import SealError, SealingKey, commitment, salted
from events.entry.canonical_json import canonical_bytes
from events.entry.kinds import Leaf, attempt_document, leaf
from statesvc.database.queries import Sender, columns, queries, send
from statesvc.delivery.attempt_part import DeliveryAttempt, MadeTry, ended_part, opened_part
from statesvc.delivery.notification import Gap, QueuedNotification
from statesvc.delivery.outcome import EndOutcome
from statesvc.log import entry_documents
from statesvc.log.batch_row import BatchStamp
from statesvc.log.entry_documents import AttemptDocument
from statesvc.log.event_store import extend_streams
from statesvc.log.json_compression import compress_json, open_part, seal_part

_SQL = queries("statesvc.delivery", "attempt_entry")
_KEY_COLUMNS = ("subscription_ids", "shipment_ids", "sequences")
_OPEN_COLUMNS = (
    *_KEY_COLUMNS,
    "numbers",
    "started_ats",
    "durations_ms",
    "outcomes",
    "status_codes",
    "body_commitments",
    "sealed_parts",
)
_ENDED_COLUMNS = (
    *_KEY_COLUMNS,
    "outcomes",
    "numbers",
    "started_ats",
    "durations_ms",
    "status_codes",
    "tries",
    "canonicals",
    "sealed_parts",
)
_log = structlog.get_logger()

Keys = Mapping[UUID, SealingKey | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedNotification:
    """A notification that ends now.

    `made`: the tries that are not recorded yet. `sealed_key`: of its shipment, None once erased.
    """

    subscription_id: UUID
    shipment_id: UUID
    sequence: int
    webhook_id: str
    outcome: EndOutcome
    created_at: datetime | None = None
    """When the reported change was recorded; None: not known."""
    gap: Gap | None = None
    made: Sequence[DeliveryAttempt] = ()
    sealed_key: bytes | None = field(repr=False)

    @classmethod
    def of(
        cls, queued: QueuedNotification, outcome: EndOutcome, made: Sequence[DeliveryAttempt]
    ) -> Self:
        return cls(
            subscription_id=queued.subscription_id,
            shipment_id=queued.shipment_id,
            sequence=queued.sequence,
            webhook_id=queued.notification.webhook_id,
            outcome=outcome,
            created_at=queued.notification.created_at,
            gap=queued.notification.gap,
            made=made,
            sealed_key=queued.sealed_key,
        )

    @property
    def key(self) -> tuple[UUID, UUID, int]:
        return self.subscription_id, self.shipment_id, self.sequence

    @property
    def may_have_more(self) -> bool:
        """True if other tries, or notifications that it covers, may end with it."""
        is_first = bool(self.made) and self.made[0].queued.number == 1
        return self.outcome is not EndOutcome.LATE and (self.gap is not None or not is_first)


@dataclass(slots=True)
class _Covered:
    """A notification that ends with another. `gap`: that of its own body."""

    gap: Gap | None
    tries: list[MadeTry] = field(default_factory=list)


@dataclass(slots=True)
class _Taken:
    """Entries that end with a notification: the recorded tries, and by sequence the
    notifications that it covers.
    """

    tries: list[MadeTry] = field(default_factory=list)
    covered: dict[int, _Covered] = field(default_factory=dict)


class _EndRow(NamedTuple):
    ended: EndedNotification
    number: int
    tries: tuple[datetime | None, int | None, int | None, str | None]
    """The columns of the only try, or the list of all."""
    leaf: Leaf
    sealed_part: bytes | None


async def record_open_attempts(
    connection: Sender,
    keyring: Keyring,
    attempts: Sequence[DeliveryAttempt],
    *,
    now: datetime,
    worker: str,
) -> None:
    """Store tries at notifications that have not ended."""
    if not attempts:
        return
    keys = _keys(keyring, {one.queued.shipment_id: one.queued.sealed_key for one in attempts})
    rows = []
    for one in attempts:
        queued, made = one.queued, MadeTry.of(one)
        rows.append(
            (
                queued.subscription_id,
                queued.shipment_id,
                queued.sequence,
                made.number,
                made.started_at,
                made.duration_ms,
                made.outcome,
                made.status_code,
                made.body_commitment,
                _sealed_try(queued, made, keys[queued.shipment_id]),
            )
        )
    await connection.execute(
        _SQL["insert_open_attempts"], {"now": now, "worker": worker, **columns(rows, _OPEN_COLUMNS)}
    )


async def append_ends(
    connection: Sender, keyring: Keyring, ends: Sequence[EndedNotification], *, now: BatchStamp
) -> list[bytes]:
    """Append them as the first entries of a batch.

    Returns their leaf hashes: the caller writes the batch row.
    """
    if not ends:
        return []
    keys = _keys(keyring, {one.shipment_id: one.sealed_key for one in ends})
    # most end with their first try, and there is nothing to collect
    taken = await _take(connection, [one for one in ends if one.may_have_more], keys)
    rows = [
        _end_row(one, taken.get(one.key) or _Taken(), key=keys[one.shipment_id], now=now)
        for one in ends
    ]
    values = [
        (
            *row.ended.key,
            row.ended.outcome.value,
            row.number,
            *row.tries,
            compress_json(row.leaf.canonical),
            row.sealed_part,
        )
        for row in rows
    ]
    await connection.execute(
        _SQL["insert_attempts"],
        {
            "batch_id": now.batch_id,
            "recorded_at": now.recorded_at,
            **columns(values, _ENDED_COLUMNS),
        },
    )
    # what it tells is an entry of its shipment: mostly of this month, so the stream
    # reaches as far already
    month = now.recorded_at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    older = (one.shipment_id for one in ends if one.created_at is None or one.created_at < month)
    await extend_streams(connection, older, now.recorded_at)
    return [row.leaf.leaf_hash for row in rows]


async def tried(
    connection: Sender, keys: Sequence[tuple[UUID, UUID, int]]
) -> list[EndedNotification]:
    """Return, as cancelled, those notifications with tries at them or at those that they cover."""
    cursor = await connection.execute(_SQL["tried"], columns(keys, _KEY_COLUMNS), binary=True)
    return [
        EndedNotification(
            subscription_id=row[0],
            shipment_id=row[1],
            sequence=row[2],
            webhook_id=row[3],
            sealed_key=row[4],
            outcome=EndOutcome.CANCELLED,
            gap=_gap(row[5], row[6], row[7]),
        )
        for row in await cursor.fetchall()
    ]


async def _take(
    connection: Sender, ends: Sequence[EndedNotification], keys: Keys
) -> dict[tuple[UUID, UUID, int], _Taken]:
    taken = {one.key: _Taken() for one in ends}
    if not ends:
        return taken
    asked = await send(
        connection,
        _SQL["take_open_attempts"],
        columns(list(taken), _KEY_COLUMNS),
        lambda rows: [_Found(*row) for row in rows],
    )
    for row in await asked.rows():
        end = taken[row.subscription_id, row.shipment_id, row.sequence]
        tries = end.tries
        if row.of_sequence != row.sequence:
            tries = end.covered.setdefault(
                row.of_sequence, _Covered(_gap(row.skipped, row.from_sequence, row.to_sequence))
            ).tries
        if row.number is not None:
            tries.append(row.made(keys[row.shipment_id]))
    return taken


class _Found(NamedTuple):
    subscription_id: UUID
    shipment_id: UUID
    sequence: int
    of_sequence: int
    webhook_id: str
    number: int | None
    started_at: datetime
    duration_ms: int
    outcome: str
    status_code: int | None
    body_commitment: bytes
    sealed_part: bytes | None
    skipped: int | None
    from_sequence: int
    to_sequence: int

    def made(self, key: SealingKey | None) -> MadeTry:
        """Return the recorded try; its part only where it opens."""
        number = self.number or 0
        context = attempt_context(self.shipment_id, self.webhook_id, number)
        return MadeTry(
            number=number,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            outcome=self.outcome,
            status_code=self.status_code,
            body_commitment=self.body_commitment,
            part=_opened_try(self.sealed_part, key, context, self.shipment_id),
        )


def _gap(skipped: int | None, from_sequence: int, to_sequence: int) -> Gap | None:
    return (
        None
        if skipped is None
        else Gap(skipped=skipped, from_sequence=from_sequence, to_sequence=to_sequence)
    )


def _end_row(
    ended: EndedNotification, taken: _Taken, *, key: SealingKey | None, now: BatchStamp
) -> _EndRow:
    # by number: the entry's bytes must not depend on the order in which rows came
    tries = sorted([*taken.tries, *map(MadeTry.of, ended.made)], key=lambda one: one.number)
    part = (
        None
        if key is None
        else ended_part(tries, {sequence: each.tries for sequence, each in taken.covered.items()})
    )
    # salted: without it a short text could be guessed from its commitment after an erasure
    salted_part = None if part is None else salted(part)
    number = tries[-1].number if tries else 0
    document = attempt_document(
        webhook_id=ended.webhook_id,
        subscription_id=ended.subscription_id,
        shipment_id=ended.shipment_id,
        sequence=ended.sequence,
        outcome=ended.outcome.value,
        tries=[one.document() for one in tries],
        gap=None if ended.gap is None else asdict(ended.gap),
        covers=[
            _covered_document(sequence, each) for sequence, each in sorted(taken.covered.items())
        ],
        recorded_at=now.recorded_at,
        part_commitment=None if salted_part is None else commitment(salted_part),
    )
    sealed_part = None
    if key is not None and salted_part is not None:
        context = ended_context(ended.shipment_id, ended.webhook_id, number)
        sealed_part = seal_part(key, salted_part, context)
    entry = leaf(document, epoch=now.epoch)
    return _EndRow(ended, number, _tries_columns(entry.canonical), entry, sealed_part)


def _tries_columns(canonical: bytes) -> tuple[datetime | None, int | None, int | None, str | None]:
    document: AttemptDocument = entry_documents.attempt(canonical)
    made = document.only_try
    if made is None:
        return None, None, None, orjson.dumps(document.listed_tries).decode()
    return datetime.fromisoformat(made.started_at), made.duration_ms, made.status_code, None


def _covered_document(sequence: int, covered: _Covered) -> dict[str, Any]:
    stated = {
        "sequence": sequence,
        "gap": None if covered.gap is None else asdict(covered.gap),
        "tries": [one.document() for one in covered.tries] or None,
    }
    return {name: value for name, value in stated.items() if value is not None}


def _sealed_try(queued: QueuedNotification, made: MadeTry, key: SealingKey | None) -> bytes | None:
    if key is None or made.part is None:
        return None
    part = salted(canonical_bytes(made.part))
    context = attempt_context(queued.shipment_id, queued.notification.webhook_id, made.number)
    return seal_part(key, part, context)


def _opened_try(
    sealed: bytes | None, key: SealingKey | None, context: bytes, shipment_id: UUID
) -> Mapping[str, Any] | None:
    if sealed is None or key is None:
        return None
    try:
        return opened_part(open_part(key, sealed, context))
    except SealError as error:
        _log.error("attempt_part_unreadable", shipment_id=shipment_id, error=error)
        return None


def _keys(keyring: Keyring, sealed: Mapping[UUID, bytes | None]) -> dict[UUID, SealingKey | None]:
    return {shipment_id: _open(keyring, key, shipment_id) for shipment_id, key in sealed.items()}


def _open(keyring: Keyring, sealed_key: bytes | None, shipment_id: UUID) -> SealingKey | None:
    if sealed_key is None:
        return None
    try:
        return keyring.open_shipment_key(sealed_key, shipment_id)
    except SealError as error:
        _log.error("shipment_key_unreadable", shipment_id=shipment_id, error=error)
        return None
