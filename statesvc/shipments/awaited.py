"""Numbers of which something must be heard: registered with their carrier, which only pushes.

Whether anything was heard is asked once, when the hours are over (`statesvc/expectations/never_heard.py`): a push costs nothing more.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.identity.ids import awaited_id
from statesvc.database.queries import queries
from statesvc.log.actions import SHIPMENT, record_action
from statesvc.shipments.as_of import Horizon
from statesvc.shipments.references import AttachedTo, NumberErasedError

HOURS_MAX: Final = 24 * 365
_SQL = queries("statesvc.shipments", "awaited")
Connection = AsyncConnection[Any]


class AwaitedHours(NamedTuple):
    """Hours within which something must be heard; `observed_at`: nothing was, and it was observed then."""

    hours: int
    awaited_at: datetime
    due_at: datetime
    observed_at: datetime | None


async def await_number(connection: Connection, number: AttachedTo, hours: int, *, actor: str, why: Mapping[str, str]) -> AwaitedHours:
    """Await it, with an entry in the log unless it is awaited for these hours already. Raises NumberErasedError."""
    async with connection.transaction():
        (is_erased,) = await _row(connection, "is_erased", number._asdict()) or (False,)
        if is_erased:
            raise NumberErasedError
        row = await _row(connection, "lock_awaited", number._asdict())
        if row is not None and (present := AwaitedHours(*row)).hours == hours and present.observed_at is None:
            return present
        row = await _row(connection, "put_awaited", {**number._asdict(), "hours": hours})
        assert row is not None  # noqa: S101 - RETURNING of one row
        await _record(connection, "await_shipment", number, {"hours": hours, **why}, actor)
    return AwaitedHours(*row)


async def stop_awaiting(connection: Connection, number: AttachedTo, *, actor: str, why: Mapping[str, str]) -> bool:
    """Stop awaiting it. False where it was not awaited."""
    async with connection.transaction():
        row = await _row(connection, "delete_awaited", number._asdict())
        if row is not None:
            await _record(connection, "stop_awaiting_shipment", number, {"hours": row[0], **why}, actor)
    return row is not None


async def forget_awaited(connection: Connection, number: AttachedTo) -> None:
    """Forget the number, which is erased, in the caller's transaction."""
    await _row(connection, "delete_awaited", number._asdict())


async def was_never_heard(connection: Connection, number: AttachedTo, horizon: Horizon) -> bool:
    """Return whether it was observed and sealed by then that nothing had been heard."""
    asked = {"awaited_id": awaited_id(*number), "size": horizon.size}
    row = await (await connection.execute(_SQL["never_heard_at"], asked, prepare=False)).fetchone()
    return row == (True,)


async def _record(connection: Connection, verb: str, number: AttachedTo, details: Mapping[str, Any], actor: str) -> None:
    target = f"{SHIPMENT}{number.carrier_id} {number.number}"
    await record_action(connection, actor=actor, verb=verb, target=target, details=details)


async def _row(connection: Connection, query: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as the query has it
    return await (await connection.execute(_SQL[query], parameters, binary=True)).fetchone()
