"""Entries that record the readings of personal fields: the reader and the time.

The first reading of an hour by a reader of a target is an entry, durable before the answer is sent.
The database guarantees that it is the first, with any number of processes. Further readings are
counted and become one entry at the end of the hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from statesvc.database.queries import columns, queries
from statesvc.log.actions import Action, record_action, record_actions

READ: Final = "read_personal"
# Verbs of the two entries; the second gives the number of readings after the first.
READ_AGAIN: Final = "read_personal_again"
_AT_ONCE: Final = 500

_SQL = queries("statesvc.log", "personal_read_entries")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalRead:
    """A reading. `target` is such as `shipment <id>`; `details` go into the first entry."""

    actor: str
    target: str
    details: Mapping[str, str] = field(default_factory=dict)


class CountedHour(NamedTuple):
    """Key by which further readings are counted."""

    actor: str
    target: str
    hour: datetime


@dataclass(frozen=True, slots=True)
class BegunHour:
    """`is_first`: this reading was recorded. `seconds_left` until the hour can be closed."""

    counted: CountedHour
    is_first: bool
    seconds_left: float


async def begin_personal_read(connection: AsyncConnection[Any], reading: PersonalRead) -> BegunHour:
    """Record the first reading of the hour, durably, in a transaction of its own."""
    async with connection.transaction():
        row = await (
            await connection.execute(
                _SQL["begin"], {"actor": reading.actor, "target": reading.target}
            )
        ).fetchone()
        assert row is not None  # noqa: S101 - a SELECT from one tick has one row
        hour, seconds_left, is_first = row
        if is_first:
            await record_personal_read(connection, reading)
    return BegunHour(CountedHour(reading.actor, reading.target, hour), is_first, seconds_left)


async def record_personal_read(connection: AsyncConnection[Any], reading: PersonalRead) -> None:
    """Record it, even if it is not the first of the hour."""
    async with connection.transaction():
        await record_action(
            connection,
            actor=reading.actor,
            verb=READ,
            target=reading.target,
            details=reading.details,
        )


async def count_further(
    connection: AsyncConnection[Any], further: Mapping[CountedHour, int]
) -> None:
    """Add to the counts; of an hour that was closed meanwhile another entry follows."""
    rows = [(*counted, number) for counted, number in further.items()]
    if rows:
        await connection.execute(
            _SQL["count_further"], columns(rows, ("actors", "targets", "hours", "furthers"))
        )


async def close_hours(connection: AsyncConnection[Any]) -> int:
    """Record the counts of the hours that are over; return how many entries that took.

    Safe next to others doing the same.
    """
    entries = 0
    while True:
        async with connection.transaction():
            ended = await (
                await connection.execute(_SQL["take_ended"], {"limit": _AT_ONCE})
            ).fetchall()
            actions = [
                Action(
                    actor=actor,
                    verb=READ_AGAIN,
                    target=target,
                    details={"hour": rfc3339(hour), "further": further},
                )
                for actor, target, hour, further in sorted(ended)
                if further
            ]
            await record_actions(connection, actions)
        entries += len(actions)
        if len(ended) < _AT_ONCE:
            return entries
