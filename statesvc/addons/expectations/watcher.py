"""The watcher: a job of every worker that checks due shipments and awaited numbers.

It sleeps a minute while none is due, and works in small steps while many are: a million shipments
that come due at once, because a carrier stopped, neither starve other work nor flood their
subscribers.

Whether any event of an awaited number came is checked only after its hours, so a push costs no
extra time. Streams of such numbers are locked or reserved as an append does it, so a first message
that comes at the same time goes before or after.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from events.entry.kinds import leaf, observation_document
from events.identity.ids import awaited_id, shipment_id
from projections.expectations import FIRST_SEQUENCE, Deadline, Expectation, next_deadline
from projections.state import INITIAL, ShipmentState
from statesvc.addons.expectations.awaited_numbers import NUMBERS, heard_numbers
from statesvc.addons.expectations.observe import (
    DueShipment,
    Observation,
    WatchReport,
    carriers_to_put_off,
    observe,
    write_observations,
)
from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import Columns, encoded, ints, queries, timestamps, uuids
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, Wakes
from statesvc.log.batch_row import LONGEST_TRANSACTION, BatchStamp, begin_batch
from statesvc.log.event_store import reserve_streams
from statesvc.log.json_compression import decompress_json
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component
from statesvc.shipments.awaited import SHOWN_DAYS
from statesvc.shipments.expectation_rules import ALL_CARRIERS, RuleBook, RuleScope, read_rules
from statesvc.telemetry.metrics import Telemetry

AT_ONCE: Final = 500
PUT_OFF_AT_ONCE: Final = 5_000
_SINCE: Final = datetime(2020, 1, 1, tzinfo=UTC)
_SQL = queries("statesvc.addons.expectations", "watcher")
Connection = AsyncConnection[Any]


class DueNumber(NamedTuple):
    carrier_id: str
    number: str
    hours: int
    awaited_at: datetime
    is_observed: bool

    @property
    def deadline(self) -> datetime:
        """When its hours were over; it may be looked at later."""
        return self.awaited_at + timedelta(hours=self.hours)


async def observe_never_heard(connection: Connection, *, worker: str) -> WatchReport:
    """Run a pass, of `AT_ONCE` numbers at most. `worker` names the process in the log."""
    report = WatchReport(at_once=AT_ONCE)
    async with connection.transaction():
        alone = await (await connection.execute(_SQL["try_alone_with_awaited"])).fetchone()
        if alone != (True,):
            return report
        due = [
            DueNumber(*row)
            for row in await (
                await connection.execute(_SQL["due"], {"limit": AT_ONCE}, binary=True)
            ).fetchall()
        ]
        report.due = len(due)
        waiting = await carriers_to_put_off(
            connection, {one.carrier_id for one in due if not one.is_observed}
        )
        if waiting:
            put_off = await connection.execute(
                _SQL["put_off"], {"waiting": sorted(waiting), "limit": PUT_OFF_AT_ONCE}
            )
            report.put_off = put_off.rowcount
        locked = await _locked(
            connection, [one for one in due if one.is_observed or one.carrier_id not in waiting]
        )
        if not locked:
            return report
        # under the locks: before them a message could have come meanwhile
        heard = await heard_numbers(connection, [(one.carrier_id, one.number) for one in locked])
        settled = [
            one for one in locked if one.is_observed or (one.carrier_id, one.number) in heard
        ]
        await connection.execute(_SQL["settle"], _numbers(settled))
        if unheard := [one for one in locked if one not in settled]:
            now = await (await begin_batch(connection)).rows()
            report.observations = [_observation(one, now) for one in unheard]
            await connection.execute(
                _SQL["note_observed"],
                {**_numbers(unheard), "recorded_at": now.recorded_at, "shown_days": SHOWN_DAYS},
            )
            await write_observations(connection, report, now, worker)
    return report


async def _locked(connection: Connection, due: Sequence[DueNumber]) -> list[DueNumber]:
    """Lock the numbers that no other transaction changes or appends to."""
    by_id = {shipment_id(one.carrier_id, one.number, ""): one for one in due}
    cursor = await connection.execute(_SQL["lock_due"], _numbers(due), binary=True)
    rows = set(await cursor.fetchall())
    wanted = [each for each, one in by_id.items() if (one.carrier_id, one.number) in rows]
    cursor = await connection.execute(
        _SQL["lock_streams"], {"shipment_ids": uuids(wanted)}, binary=True
    )
    held = {each for (each,) in await cursor.fetchall()}
    # a number without a stream: reserved, so that no first message comes between look and entry
    held |= (await (await reserve_streams(connection, wanted, bounded=True)).rows()).keys()
    return [by_id[each] for each in wanted if each in held]


def _numbers(due: Iterable[DueNumber]) -> dict[str, Any]:
    return encoded([(one.carrier_id, one.number) for one in due], NUMBERS)


def _observation(one: DueNumber, now: BatchStamp) -> Observation:
    """Build the observation.

    Its sequence is below those of all observations of shipments, and differs from time to time.
    """
    of = awaited_id(one.carrier_id, one.number)
    cause, sequence = (
        one.awaited_at.astimezone(UTC).isoformat(),
        FIRST_SEQUENCE - int((now.recorded_at - _SINCE).total_seconds()) // 60,
    )
    document = observation_document(
        shipment_id=of,
        version=0,
        kind=Expectation.NEVER_HEARD.value,
        since=one.deadline,
        details={
            "carrier_id": one.carrier_id,
            "cause": cause,
            "hours": one.hours,
            "number": one.number,
            "rules": 0,
            "sequence": sequence,
            "status": INITIAL.status.value,
        },
        recorded_at=now.recorded_at,
    )
    return Observation(
        shipment=DueShipment(
            of, one.carrier_id, one.number, one.number, 0, now.recorded_at, INITIAL
        ),
        deadline=Deadline(one.deadline, Expectation.NEVER_HEARD, cause, one.hours),
        sequence=sequence,
        document=document,
        entry=leaf(document, epoch=now.epoch),
    )


EVERY_SECONDS: Final = 60.0
# Between two steps while more is due: with `observe.AT_ONCE` the rate of each worker.
STEP_SECONDS: Final = 1.0
PAGE_ROWS: Final = 1_000
_DUE: Final[Columns] = {"shipment_ids": uuids, "versions": ints, "due_ats": timestamps}
log = structlog.get_logger()


class Unfinished(NamedTuple):
    carrier_id: str
    shipment_id: UUID
    version: int
    recorded_at: datetime
    due_at: datetime | None
    state: bytes


def watcher(pool: Pool, telemetry: Telemetry, waker: Wakes, *, worker: str) -> Periodic:
    """Make the watcher. `worker` names the process in the log."""

    async def work() -> float | None:
        async with pool.connection() as connection:
            # without a transaction or lock: most of the time nothing is due
            if await (await connection.execute(_SQL["is_due"])).fetchone() != (True,):
                return None
            # before the due ones are looked at, so that they are judged by the present rules
            is_rearming = await rearm(connection)
            reports = [
                await observe(connection, worker=worker),
                await observe_never_heard(connection, worker=worker),
            ]
        observations = [one for report in reports for one in report.observations]
        for one in observations:
            telemetry.observations.add(
                1, {"carrier": one.shipment.carrier_id, "type": one.deadline.kind.value}
            )
        if observations:
            log.info("observed", count=len(observations))
            waker.wake(LOG)
        if any(report.notifications for report in reports):
            waker.wake(OUTBOX)
        if put_off := sum(report.put_off for report in reports):
            log.warning(
                "observations_put_off",
                count=put_off,
                why="their carriers are held, behind or silent, or the log was forked",
            )
        return STEP_SECONDS if is_rearming or any(report.is_full for report in reports) else None

    return Periodic(
        "watcher", work, every_seconds=EVERY_SECONDS, retry_seconds=EVERY_SECONDS, jitter=0.1
    )


def watch_jobs(launch: Launch, base: Runtime) -> list[Component]:
    """Return the watcher as a part of the role worker."""
    watching = watcher(base.pool, base.telemetry, base.waker, worker=launch.worker_id)
    return [Component(name=watching.name, run=watching.run, stop=watching.stop)]


async def catch_up(connection: AsyncConnection[Any], *, worker: str) -> None:
    while (await observe(connection, worker=worker)).is_full or (
        await observe_never_heard(connection, worker=worker)
    ).is_full:
        pass


async def rearm(connection: Connection) -> bool:
    """Apply a page of the oldest rule change that is not applied to all unfinished shipments.

    Return whether there may be more.
    """
    async with connection.transaction():
        alone = await (await connection.execute(_SQL["try_alone"])).fetchone()
        if alone != (True,):
            return False
        # an append that began under the old rules may still commit with its old due time
        settle_seconds = LONGEST_TRANSACTION.total_seconds()
        row = await (
            await connection.execute(_SQL["unapplied"], {"settle_seconds": settle_seconds})
        ).fetchone()
        if row is None:
            return False
        carrier_id, service, *after = row
        page = await unfinished(connection, *after, limit=PAGE_ROWS)
        if moved := list(
            _moved(page, RuleScope(carrier_id, service), await read_rules(connection))
        ):
            await connection.execute(_SQL["set_due"], encoded(moved, _DUE))
        # a short page is the last: the change is applied
        last = page[-1] if len(page) == PAGE_ROWS else None
        applied = {
            "recorded_at": last and last.recorded_at,
            "shipment_id": last and last.shipment_id,
        }
        await connection.execute(
            _SQL["applied_to"], {"carrier_id": carrier_id, "service": service, **applied}
        )
        return True


async def unfinished(
    connection: Connection, after_recorded_at: datetime, after_shipment_id: UUID, *, limit: int
) -> list[Unfinished]:
    """Return the next of all, in the order of their last change."""
    asked = {
        "after_recorded_at": after_recorded_at,
        "after_shipment_id": after_shipment_id,
        "limit": limit,
    }
    cursor = await connection.execute(_SQL["unfinished"], asked, binary=True)
    return [Unfinished(*row) for row in await cursor.fetchall()]


def _moved(
    page: Sequence[Unfinished], scope: RuleScope, rules: RuleBook
) -> Iterator[tuple[UUID, int, datetime | None]]:
    """Yield those within the scope that are due at another time by the rules."""
    for one in page:
        if scope.carrier_id in (ALL_CARRIERS, one.carrier_id):
            state = ShipmentState.from_json(decompress_json(one.state))
            if not scope.covers(one.carrier_id, state.service):
                continue
            deadline = next_deadline(
                state, rules.of(one.carrier_id, state.service), recorded_at=one.recorded_at
            )
            due_at = deadline.due_at if deadline else None
            if due_at != one.due_at:
                yield one.shipment_id, one.version, due_at
