"""Awaited numbers: registered with a carrier that only pushes, with hours for the first scan.

The check is made once, when the hours are over (`watcher`), so it adds no cost to a push. For
the same reason a number that has been heard of stays until then; it is left out of lists.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.identity.ids import shipment_id
from statesvc.background.duration import duration
from statesvc.database.queries import Columns, encoded, queries, texts, uuids
from statesvc.health.finding import Finding, Urgency
from statesvc.health.status_parts import OwnCheck
from statesvc.log.actions import record_actions
from statesvc.shipments.awaited import AWAIT, AwaitedHours, awaited_action, forget_awaited
from statesvc.shipments.references import AttachedTo, NumberErasedError
from statesvc.shipments.shipment_list import BEGINNING_OF_TIME, END_OF_TIME

SCAN_MAX: Final = 1_000
COUNT_MAX: Final = 1_000
# Columns of numbers, each behind its carrier, as statements take them.
NUMBERS: Final[Columns] = {"carrier_ids": texts, "numbers": texts}
HOURS_MAX: Final = 24 * 365
Connection = AsyncConnection[Any]
_SQL = queries("statesvc.addons.expectations", "awaited_numbers")


class AwaitedPosition(NamedTuple):
    """A place in the list: after this number."""

    due_at: datetime
    number: str
    carrier_id: str


class UnheardNumber(NamedTuple):
    """A number without a scan.

    `observed_at`: when its hours were found over; None: it still waits.
    """

    carrier_id: str
    number: str
    hours: int
    awaited_at: datetime
    due_at: datetime
    observed_at: datetime | None
    position_at: datetime

    @property
    def position(self) -> AwaitedPosition:
        return AwaitedPosition(self.position_at, self.number, self.carrier_id)


async def list_unheard(
    connection: Connection,
    *,
    carrier_id: str | None,
    never_heard: bool,
    newest_first: bool,
    after: AwaitedPosition | None,
    limit: int,
) -> tuple[list[UnheardNumber], AwaitedPosition | None]:
    """Return a page, and the position of the next (None: this is the last).

    It may be short: it reads at most `SCAN_MAX` numbers.
    """
    begin = AwaitedPosition(END_OF_TIME if newest_first else BEGINNING_OF_TIME, "", "")
    place = after or begin
    asked = {
        "carrier_id": carrier_id,
        "never_heard": never_heard,
        "after_due_at": place.due_at,
        "after_number": place.number,
        "after_carrier_id": place.carrier_id,
        "limit": SCAN_MAX,
    }
    cursor = await connection.execute(
        _SQL["newest_awaited" if newest_first else "oldest_awaited"], asked, binary=True
    )
    rows = [UnheardNumber(*row) for row in await cursor.fetchall()]
    heard = (
        set()
        if never_heard
        else await heard_numbers(connection, [(one.carrier_id, one.number) for one in rows])
    )
    unheard = [one for one in rows if (one.carrier_id, one.number) not in heard]
    if len(unheard) > limit:
        return unheard[:limit], unheard[limit - 1].position
    return unheard, rows[-1].position if len(rows) == SCAN_MAX else None


async def _find(connection: Connection) -> list[Finding]:
    """Count the numbers never heard of within a day; their subscribers were notified."""
    ((count, last_seconds, carriers),) = await (
        await connection.execute(_SQL["never_heard_of_late"], {"count_max": COUNT_MAX})
    ).fetchall()
    if last_seconds is None:
        return []
    least = "at least " if count == COUNT_MAX else ""
    text = (
        f"within a day the hours of {least}{count:,} were over and nothing was heard"
        f" ({', '.join(sorted(carriers))}); the last {duration(last_seconds)} ago"
    )
    return [Finding(urgency=Urgency.NOTE, about="awaited numbers", text=text)]


CHECK: Final = OwnCheck("awaited numbers", "something was heard of each within its hours", _find)


async def heard_numbers(
    connection: Connection, numbers: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return those of these numbers, each behind its carrier, of which something was heard."""
    shipments = uuids([shipment_id(carrier_id, number, "") for carrier_id, number in numbers])
    cursor = await connection.execute(
        _SQL["heard"], {**encoded(numbers, NUMBERS), "shipment_ids": shipments}, binary=True
    )
    return set(await cursor.fetchall())


async def await_number(
    connection: Connection, number: AttachedTo, hours: int, *, actor: str, why: Mapping[str, str]
) -> AwaitedHours:
    """Await it, with an entry in the log unless it is awaited for these hours already.

    Raises NumberErasedError.
    """
    async with connection.transaction():
        (is_erased,) = await _row(connection, "is_erased", number._asdict()) or (False,)
        if is_erased:
            raise NumberErasedError
        row = await _row(connection, "lock_awaited", number._asdict())
        if (
            row is not None
            and (present := AwaitedHours(*row)).hours == hours
            and present.observed_at is None
        ):
            # no second entry: a shop that sends the same order again must not fill the log
            return present
        row = await _row(connection, "put_awaited", {**number._asdict(), "hours": hours})
        assert row is not None  # noqa: S101 - RETURNING of one row
        awaited = AwaitedHours(*row)
        # A number that was heard of is dropped without an entry, so the log alone cannot tell
        # whether other hours count from the first request or from this one.
        details = {"hours": hours, "since": awaited.awaited_at.isoformat(), **why}
        await record_actions(connection, [awaited_action(AWAIT, number, details, actor)])
    return awaited


async def stop_awaiting(
    connection: Connection, number: AttachedTo, *, actor: str, why: Mapping[str, str]
) -> bool:
    """Stop awaiting it. False: it was not awaited."""
    async with connection.transaction():
        actions = await forget_awaited(connection, number, actor=actor, why=why)
        await record_actions(connection, actions)
    return bool(actions)


# as the query has it
async def _row(connection: Connection, query: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401
    return await (await connection.execute(_SQL[query], parameters, binary=True)).fetchone()
