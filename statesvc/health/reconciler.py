"""Counts that the promises hold: acknowledged against settled, due against notified.

An acknowledged message is settled, a dead letter, or waits; a due notification has ended, or waits.
The rest is `missing` and needs an operator. Ingress counts acknowledgements independently of the
messages (`ack_count`), so a database that lost messages, as after a failover to a lagging standby,
does not hide it. A killed process loses a few seconds of its counts at most: the count is then too
low, never too high.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries

log = structlog.get_logger()

MINUTE_SECONDS: Final = 60
# Time after its minute at which a message is checked; waiting messages are checked again.
SETTLE_SECONDS: Final = 120.0
# Between the database's clock and that of the machine that took a message, as long as neither is
# wrong.
CLOCKS_DIFFER: Final = timedelta(hours=1)
ANY_TIME: Final = timedelta(days=3650)
_EVERY_SECONDS: Final = 60.0
_MINUTES_AT_ONCE: Final = 60
_ENTRIES_AT_ONCE: Final = 20_000
_SPANS_AT_ONCE: Final = 50
# An id of a message begins with its milliseconds since 1970, in 48 bits.
_MS_SHIFT: Final = 80

_SQL = queries("statesvc.health", "reconciler")

Promise = Literal["settled", "notified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """A span that was counted: `settled` spans are minutes, `notified` spans parts of the sealed
    log.
    """

    promise: Promise
    begins: int
    ends: int
    at: datetime
    expected: int
    waiting: int
    missing: int
    young: bool = True
    """True if missing messages may yet be found; later they stay missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseStatus:
    """Status of a promise over the last days.

    `behind_seconds`: age of the last count; None: no count.
    """

    promise: Promise
    expected: int
    waiting: int
    missing: int
    behind_seconds: float | None


def reconciler(pool: Pool) -> Periodic:
    """Return a job that counts once a minute, in one process at a time."""

    async def work() -> None:
        async with pool.connection() as connection:
            await reconcile(connection)

    return Periodic(
        "reconciler", work, every_seconds=_EVERY_SECONDS, retry_seconds=_EVERY_SECONDS, jitter=0.1
    )


async def reconcile(connection: AsyncConnection[Any]) -> list[Reconciled]:
    """Run a pass; return its counts, none while another process runs one."""
    async with connection.transaction():
        begun = await (await connection.execute(_SQL["begin"])).fetchone()
        if begun is None or not begun[0]:
            return []
        counted = [
            await _keep(connection, await _count_minute(connection, begins))
            for begins in await _minutes(connection)
        ]
        counted += [
            await _keep(connection, await _count_span(connection, *span))
            for span in await _spans_again(connection)
        ]
        # bounded: after days without a reconciler a pass must not be one transaction over all of
        # them
        for _ in range(_SPANS_AT_ONCE):
            span = await _next_span(connection)
            if span is None:
                break
            counted.append(await _keep(connection, await _count_span(connection, *span)))
        if counted:
            await connection.execute(_SQL["forget"])
    for one in counted:
        if one.missing:
            log.error(
                "promise_broken", promise=one.promise, since=one.at.isoformat(), count=one.missing
            )
    return counted


async def read_promises(connection: AsyncConnection[Any]) -> list[PromiseStatus]:
    rows = await (await connection.execute(_SQL["summary"])).fetchall()
    return [
        PromiseStatus(
            promise=promise,
            expected=expected,
            waiting=waiting,
            missing=missing,
            behind_seconds=behind,
        )
        for promise, expected, waiting, missing, behind in rows
    ]


async def _minutes(connection: AsyncConnection[Any]) -> list[int]:
    cursor = await connection.execute(
        _SQL["minutes"], {"settle_seconds": SETTLE_SECONDS, "limit": _MINUTES_AT_ONCE}
    )
    return [begins for (begins,) in await cursor.fetchall()]


async def _spans_again(connection: AsyncConnection[Any]) -> list[tuple[int, int]]:
    cursor = await connection.execute(_SQL["spans_again"], {"limit": _SPANS_AT_ONCE})
    return [(begins, ends) for begins, ends in await cursor.fetchall()]


async def _next_span(connection: AsyncConnection[Any]) -> tuple[int, int] | None:
    cursor = await connection.execute(
        _SQL["next_span"], {"settle_seconds": SETTLE_SECONDS, "entries": _ENTRIES_AT_ONCE}
    )
    begins, ends = await _one(cursor)
    return None if begins is None else (begins, ends)


async def _count_minute(connection: AsyncConnection[Any], begins: int) -> Reconciled:
    """Look in the partitions around the minute.

    What is not there is looked for by its id in all, before anyone is alarmed.
    """
    near = await _count_messages(connection, begins, difference=CLOCKS_DIFFER)
    return await _count_messages(connection, begins, difference=ANY_TIME) if near.missing else near


async def _count_messages(
    connection: AsyncConnection[Any], begins: int, *, difference: timedelta
) -> Reconciled:
    at, ends = datetime.fromtimestamp(begins, UTC), begins + MINUTE_SECONDS
    asked = {
        "at": at,
        "from_id": first_id(begins),
        "to_id": first_id(ends),
        "difference": difference,
    }
    # planned for these very times: a generic plan would look into every partition
    acknowledged, stored, waiting, lost, young = await _one(
        await connection.execute(_SQL["count_minute"], asked, prepare=False)
    )
    missing = lost + (max(0, acknowledged - stored) if young else 0)
    return Reconciled(
        promise="settled",
        begins=begins,
        ends=ends,
        at=at,
        expected=acknowledged,
        waiting=waiting,
        missing=missing,
        young=young,
    )


async def _count_span(connection: AsyncConnection[Any], begins: int, ends: int) -> Reconciled:
    cursor = await connection.execute(_SQL["count_span"], {"begins": begins, "ends": ends})
    at, due, waiting, missing = await _one(cursor)
    return Reconciled(
        promise="notified",
        begins=begins,
        ends=ends,
        at=at,
        expected=due,
        waiting=waiting,
        missing=missing,
    )


async def _keep(connection: AsyncConnection[Any], one: Reconciled) -> Reconciled:
    await connection.execute(_SQL["keep"], asdict(one))
    return one


async def _one(cursor: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a cursor of any row
    row: tuple[Any, ...] | None = await cursor.fetchone()
    assert row is not None  # noqa: S101 - counts always answer
    return row


def first_id(unix_seconds: int) -> UUID:
    """Return an id below every message id of that second and later."""
    return UUID(int=unix_seconds * 1000 << _MS_SHIFT)
