"""Results of a candidate's trials: totals, differences, and the guard that sets the share back to
0.

Written after the batch has taken effect, in a transaction of its own: losing it loses evidence,
never an event. Everything here is bounded: rows a batch, rows a carrier.

"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import columns, queries
from statesvc.health.notices import Notice, NoticeKind, write_notices
from statesvc.log.actions import record_action
from statesvc.reading.differences import Difference

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
