"""Trials of a candidate: those that wait for a foreign fleet, the evidence of all, and the guard that
sets the share back to 0.

Pending trials are written with a message's verdict, leased by the candidate's fleet and compared by a
Python worker. Evidence is written after the batch has taken effect, in a transaction of its own:
losing it, or a trial, loses no event. Everything here is bounded, by rows a batch, rows a carrier and
an hour; an erasure deletes trials with their copies of messages.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.event import value
from statesvc.database.queries import Sender, columns, queries
from statesvc.health.notices import Notice, NoticeKind, write_notices
from statesvc.log.actions import record_action
from statesvc.queue.claim import Message, Settlement
from statesvc.reading.differences import Difference
from statesvc.reading.read_message import NORMALIZED

_SQL = queries("statesvc.reading", "trials")

DIFFS_PER_BATCH_MAX: Final = 1_000
DIFFS_RETAINED: Final = 10_000
BATCHES_RETAINED: Final = 5_000
GUARD_ACTOR: Final = "guard"
WHAT_TO_DO: Final = (
    "the stable version reads everything again. `statesvc rollout show CARRIER` shows what was read"
    " differently; what the candidate read is corrected by `statesvc renormalize --carrier CARRIER"
    " --read-by VERSION`"
)
FIELD: Final = "field:"
_PRUNE_EVERY: Final = 50
_DIFF_COLUMNS: Final = ("message_ids", "event_ids", "fields", "stable_values", "candidate_values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The trials of a candidate in a batch. `found`: differences, each with its message."""

    carrier_id: str
    stable: str
    candidate: str
    messages: int
    errors: int
    differing: int
    found: Sequence[tuple[UUID, Difference]]


async def record_evidence(
    connection: AsyncConnection[Any], evidence: Evidence, *, worker: str
) -> bool:
    """Store the evidence and ask the guard. Return whether the guard set the share back to 0."""
    named = {"carrier_id": evidence.carrier_id, "candidate": evidence.candidate}
    counts = Counter(
        {"messages": evidence.messages, "errors": evidence.errors, "differing": evidence.differing}
    )
    counts.update(FIELD + difference.field for _, difference in evidence.found)
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["add_batch"],
            {
                **named,
                "messages": evidence.messages,
                "errors": evidence.errors,
                "differing": evidence.differing,
            },
        )
        (rollout_batch_id,) = await cursor.fetchone() or (0,)
        counted = sorted((measure, count) for measure, count in counts.items() if count)
        await connection.execute(
            _SQL["add_counts"],
            {**named, "worker": worker, **columns(counted, ("measures", "counts"))},
        )
        if evidence.found:
            await _keep_differences(connection, evidence)
        if rollout_batch_id % _PRUNE_EVERY == 0:
            await connection.execute(
                _SQL["prune_batches"], {"carrier_id": evidence.carrier_id, "keep": BATCHES_RETAINED}
            )
        return await _guard(connection, evidence)


async def _keep_differences(connection: AsyncConnection[Any], evidence: Evidence) -> None:
    rows = [
        (message_id, found.event_id, found.field, found.stable, found.candidate)
        for message_id, found in evidence.found[:DIFFS_PER_BATCH_MAX]
    ]
    await connection.execute(
        _SQL["add_diffs"],
        {
            "carrier_id": evidence.carrier_id,
            "stable": evidence.stable,
            "candidate": evidence.candidate,
            **columns(rows, _DIFF_COLUMNS),
        },
    )
    await connection.execute(
        _SQL["prune_diffs"], {"carrier_id": evidence.carrier_id, "keep": DIFFS_RETAINED}
    )


async def _guard(connection: AsyncConnection[Any], evidence: Evidence) -> bool:
    cursor = await connection.execute(
        _SQL["guard"], {"carrier_id": evidence.carrier_id, "candidate": evidence.candidate}
    )
    seen = await cursor.fetchone()
    if seen is None:
        return False
    messages, errors, differing, turned_at = seen
    await record_action(
        connection,
        actor=GUARD_ACTOR,
        verb="rollout",
        target=f"carrier {evidence.carrier_id}",
        details={
            "why": "a bound of the guard was passed",
            "candidate": evidence.candidate,
            "percent": 0,
            "messages": messages,
            "errors": errors,
            "differing": differing,
        },
    )
    details = {
        "candidate": evidence.candidate,
        "messages": messages,
        "errors": errors,
        "differing": differing,
        "what_to_do": WHAT_TO_DO,
    }
    notice = Notice(
        kind=NoticeKind.REVERTED, target=f"carrier {evidence.carrier_id}", details=details
    )
    await write_notices(connection, [notice], now=turned_at)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Since the candidate was named.

    `fields`: how often each field was read differently. `dropped`: trials that were not made in
    time.
    """

    messages: int
    errors: int
    differing: int
    fields: dict[str, int]
    dropped: int = 0


async def totals_of(
    connection: AsyncConnection[Any], carrier_id: str, candidate: str | None
) -> Totals:
    """Return the sum over all workers; zero without a candidate."""
    cursor = await connection.execute(
        _SQL["totals"], {"carrier_id": carrier_id, "candidate": candidate}
    )
    counted: dict[str, int] = dict(await cursor.fetchall())
    return Totals(
        messages=counted.get("messages", 0),
        errors=counted.get("errors", 0),
        differing=counted.get("differing", 0),
        dropped=counted.get("dropped", 0),
        fields={
            measure.removeprefix(FIELD): count
            for measure, count in counted.items()
            if measure.startswith(FIELD)
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDifference:
    """A field of an event that the versions read differently; personal values as keyed digests."""

    diff_id: int
    recorded_at: datetime
    message_id: UUID
    stable: str
    candidate: str
    event_id: str | None
    field: str
    stable_value: str | None
    candidate_value: str | None


async def list_differences(
    connection: AsyncConnection[Any],
    carrier_id: str,
    *,
    candidate: str | None,
    before: int,
    limit: int,
) -> tuple[list[StoredDifference], int | None]:
    """Return a page, newest first, of those with an id below `before`; and the `before` of the next
    page (None: this is the last).
    """
    cursor = connection.cursor(row_factory=class_row(StoredDifference))
    await cursor.execute(
        _SQL["list_diffs"],
        {"carrier_id": carrier_id, "candidate": candidate, "before": before, "limit": limit + 1},
    )
    found = await cursor.fetchall()
    return found[:limit], found[limit - 1].diff_id if len(found) > limit else None


TRIALS_RETAINED: Final = 10_000
_NO_TOKEN: Final = UUID(int=0)
_COLUMNS: Final = ("message_ids", "candidates", "shipments")
Connection = AsyncConnection[Any]


async def write_trials(connection: Sender, tried: Sequence[tuple[str, Settlement]]) -> None:
    """Have these candidates try messages that this transaction is about to settle.

    Messages with a body that cannot be opened are left out.
    """
    rows = [
        (
            settlement.message_id,
            candidate,
            ",".join([shipment_id.hex for shipment_id in settlement.shipments]),
        )
        for candidate, settlement in tried
        if settlement.sealed_key is not None
    ]
    if rows:
        await connection.execute(_SQL["write_trials"], columns(rows, _COLUMNS))


async def drop_trials(
    connection: Connection, carrier_ids: Iterable[str], *, worker: str, keep: int = TRIALS_RETAINED
) -> None:
    """Drop and count trials that are over or beyond the bound, the oldest first."""
    for carrier_id in sorted(carrier_ids):
        await connection.execute(
            _SQL["drop_trials"], {"carrier_id": carrier_id, "worker": worker, "keep": keep}
        )


@value(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A trial with its candidate's verdict. `handed_over` None: it declined."""

    trial_id: int
    message_id: UUID
    carrier_id: str
    received_at: datetime
    candidate: str
    sealed_key: bytes = field(repr=False)
    stable: str | None
    stable_handed_over: bytes | None = field(repr=False)
    handed_over: bytes | None = field(repr=False)
    commitment: bytes | None = field(repr=False)
    sealed: bytes | None = field(repr=False)

    def as_stable_read(self) -> Message | None:
        """Return the message as it took effect; None: its body is gone."""
        return self._message(self.stable, self.stable_handed_over)

    def as_candidate_read(self) -> Message | None:
        """Return the message as the candidate handed it over; None: it declined, or the body is
        gone.
        """
        return None if self.handed_over is None else self._message(self.candidate, self.handed_over)

    def _message(self, reader: str | None, handed_over: bytes | None) -> Message | None:
        if self.sealed is None or self.commitment is None:
            return None
        return Message(
            message_id=self.message_id,
            carrier_id=self.carrier_id,
            token=_NO_TOKEN,
            attempts=1,
            retries=0,
            received_at=self.received_at,
            stage="raw" if handed_over is None else NORMALIZED,
            candidate=self.candidate,
            percent=0,
            shadow=True,
            sealed_key=self.sealed_key,
            commitment=self.commitment,
            sealed=self.sealed,
            normalized_by=None if handed_over is None else reader,
            normalized=handed_over,
            stable=self.stable,
        )


_FIELDS: Final = (
    "trial_id",
    "message_id",
    "carrier_id",
    "received_at",
    "candidate",
    "sealed_key",
    "stable",
    "stable_handed_over",
    "handed_over",
    "commitment",
    "sealed",
)


async def lock_handed_over(connection: Connection, *, limit: int) -> list[HandedOver]:
    """Lock the next trials to compare, for this transaction, which ends with `forget_trials`."""
    cursor = await connection.execute(_SQL["lock_handed_over"], {"limit": limit})
    return [HandedOver(**dict(zip(_FIELDS, row, strict=True))) for row in await cursor.fetchall()]


async def forget_trials(connection: Connection, trial_ids: Sequence[int]) -> None:
    await connection.execute(_SQL["forget_trials"], {"trial_ids": list(trial_ids)})


async def any_trial(connection: Connection) -> bool:
    row = await (await connection.execute(_SQL["any_trial"])).fetchone()
    return row is not None and bool(row[0])


async def erase_trials(connection: Connection, shipment_ids: Iterable[UUID]) -> None:
    """Delete the trials of messages that name these shipments, with their handed-over events."""
    await connection.execute(_SQL["erase_trials"], {"shipment_ids": list(shipment_ids)})
