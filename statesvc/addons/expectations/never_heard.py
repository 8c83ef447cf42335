"""Awaited numbers after their hours: checks whether any event came.

The check runs only then, so a push costs no extra time. Their streams are locked or reserved as an
append does it, so a first message that comes at the same time goes before or after.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.entry.kinds import leaf, observation_document
from events.identity.ids import awaited_id, shipment_id
from projections.expectations import FIRST_SEQUENCE, Deadline, Expectation
from projections.state import INITIAL
from statesvc.addons.expectations.awaited_numbers import NUMBERS, heard_numbers
from statesvc.addons.expectations.observe import (
    DueShipment,
    Observation,
    WatchReport,
    carriers_to_put_off,
    write_observations,
)
from statesvc.database.queries import encoded, queries, uuids
from statesvc.log.batch_row import BatchStamp, begin_batch
from statesvc.log.event_store import reserve_streams
from statesvc.shipments.awaited import SHOWN_DAYS

AT_ONCE: Final = 500
PUT_OFF_AT_ONCE: Final = 5_000
_SINCE: Final = datetime(2020, 1, 1, tzinfo=UTC)
_SQL = queries("statesvc.addons.expectations", "never_heard")
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
        alone = await (await connection.execute(_SQL["try_alone"])).fetchone()
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
