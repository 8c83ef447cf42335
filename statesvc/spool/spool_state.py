"""The spools as the database last heard of them, and their findings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.background.duration import duration
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, Urgency

SPOOL_SECONDS_MAX: Final = 300.0
_SQL = queries("statesvc.spool", "spool_state")


class SpoolState(NamedTuple):
    """`seconds`: age of the oldest message that waits."""

    name: str
    messages: int
    bytes: int
    seconds: float | None
    set_aside: int
    unseen_seconds: float


async def read_spools(connection: AsyncConnection[Any]) -> list[SpoolState]:
    rows = await (await connection.execute(_SQL["spools"])).fetchall()
    return [SpoolState(*row) for row in rows]


def spool_findings(spools: Sequence[SpoolState]) -> Iterator[Finding]:
    """Report acknowledged messages that are not stored yet."""
    waits = Finding(urgency=Urgency.NOW, about="spool", text="", page="SpoolWaits")
    for spool in spools:
        held = f"{spool.name} holds {spool.messages:,} acknowledged messages"
        age = duration(spool.seconds or 0)
        if spool.unseen_seconds > SPOOL_SECONDS_MAX:
            text = f"{spool.name} has not been drained for {duration(spool.unseen_seconds)} and may hold acknowledged messages"
            yield replace(waits, urgency=Urgency.HUMAN, text=text)
        elif spool.messages and (spool.seconds or 0) > SPOOL_SECONDS_MAX:
            yield replace(waits, text=f"{held}, the oldest for {age}")
        elif spool.messages:
            yield replace(
                waits, urgency=Urgency.NOTE, text=f"{held}, the oldest for {age}", page=None
            )
        if spool.set_aside:
            text = f"the database refused {spool.set_aside:,} messages of {spool.name}"
            yield replace(waits, text=text)
