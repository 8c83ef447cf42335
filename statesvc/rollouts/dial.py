"""Reading the dials, and turning the kill switch. Turning it is an operator action and stands in the log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.log.actions import record_action
from events.sql.queries import queries

_SQL = queries("statesvc.rollouts", "dial")

ALL: Final = "*"
"""Stands for all carriers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The dial of one carrier. `changed_at` None: never touched."""

    carrier_id: str
    candidate: str | None = None
    percent: int = 0
    shadow: bool = False
    hold: bool = False
    changed_at: datetime | None = None
    changed_by: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """A carrier's own dial, and whether its messages wait: by its own kill switch, or by the one of all."""

    rollout: Rollout
    held: bool


async def rollout_of(connection: AsyncConnection[Any], carrier_id: str) -> Standing:
    """The dial of `carrier_id` (or `ALL`); of a carrier that was never touched, the one it starts with."""
    cursor = connection.cursor(row_factory=class_row(Rollout))
    await cursor.execute(_SQL["rollout"], {"carrier_id": carrier_id})
    dials = {dial.carrier_id: dial for dial in await cursor.fetchall()}
    return Standing(dials.get(carrier_id, Rollout(carrier_id=carrier_id)), held=any(dial.hold for dial in dials.values()))


async def list_rollouts(connection: AsyncConnection[Any]) -> list[Rollout]:
    """Every dial that was ever touched, `ALL` first."""
    cursor = connection.cursor(row_factory=class_row(Rollout))
    await cursor.execute(_SQL["rollouts"])
    return await cursor.fetchall()


async def set_hold(connection: AsyncConnection[Any], *, carrier_id: str, hold: bool, why: str, actor: str) -> None:
    """Turns the kill switch of `carrier_id` (or `ALL`); it takes effect at the next claim.

    After a release the caller wakes `statesvc.wakeup.channels.INBOX`, or the workers find the messages at their next sweep.
    """
    async with connection.transaction():
        await connection.execute(_SQL["set_hold"], {"carrier_id": carrier_id, "hold": hold, "changed_by": actor, "why": why})
        await record_action(
            connection, actor=actor, verb="hold" if hold else "release", target=f"carrier {carrier_id}", details={"why": why}
        )
