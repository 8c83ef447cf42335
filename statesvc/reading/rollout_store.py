"""Reads and changes the rollouts: the kill switch, and a carrier's shares by reader.

Each change is an operator action in the log. The claim reads the rollout, so a change takes effect
at the next claim of every process. Messages claimed before finish as they began.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.carriers.carrier import Carrier
from statesvc.database.queries import queries
from statesvc.health.worker_list import SILENT_SECONDS
from statesvc.log.actions import record_action
from statesvc.reading.differences import EVENT
from statesvc.reading.reading_name import refused_names
from statesvc.reading.trials import totals_of

_SQL = queries("statesvc.reading", "rollout_store")
_EVIDENCE = queries("statesvc.reading", "trials")
log = structlog.get_logger()

# The carrier id that means all carriers.
ALL: Final = "*"
PERCENT_MAX: Final = 100
FALLBACK_SECONDS: Final = 30
FALLBACK_SECONDS_MAX: Final = 86_400
_WORKERS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The rollout of a carrier. `changed_at` None: never touched."""

    carrier_id: str
    stable: str | None = None
    candidate: str | None = None
    percent: int = 0
    shadow: bool = False
    fallback_seconds: int = FALLBACK_SECONDS
    hold: bool = False
    changed_at: datetime | None = None
    changed_by: str | None = None
    why: str = ""
    turned_at: datetime | None = None
    guard_messages: int | None = None
    guard_errors_percent: float | None = None
    guard_differences_percent: float | None = None

    @property
    def guard(self) -> "Guard | None":
        """The bounds; None without bounds."""
        if self.guard_messages is None:
            return None
        return Guard(
            messages=self.guard_messages,
            errors_percent=self.guard_errors_percent,
            differences_percent=self.guard_differences_percent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The share falls to 0 when too many (in percent) of the last `messages` trials failed, or
    were read differently.
    """

    messages: int
    errors_percent: float | None = None
    differences_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """Rollout of a candidate. Without a candidate, percent is 0 and no message is tried.

    `stable`: the foreign reading, `name@version`, for messages outside the candidate's share;
    None: ours. The candidate may be foreign, too. `fallback_seconds`: a message that its reader
    has not leased in this time may be leased by another, if the reader has asked for no message
    for as long.
    """

    candidate: str | None
    percent: int = 0
    shadow: bool = False
    guard: Guard | None = None
    stable: str | None = None
    fallback_seconds: int = FALLBACK_SECONDS


@dataclass(frozen=True, slots=True)
class Refused:
    member: str
    why: str


def refusals(rollout: RolloutSettings, carrier: Carrier | None) -> list[Refused]:
    """Return the refusals of a rollout; empty if it may be set.

    `carrier` None means all carriers.
    """
    if carrier is None:
        return (
            [Refused("candidate", "a candidate belongs to one carrier: name it instead of all")]
            if rollout != RolloutSettings(candidate=None)
            else []
        )
    found = [Refused(*each) for each in refused_names(rollout.stable, rollout.candidate, carrier)]
    if rollout.candidate is None:
        found += (
            [Refused("percent", "there is no candidate version to give it to")]
            if rollout.percent
            else []
        )
        found += (
            [Refused("shadow", "there is no candidate version to give it to")]
            if rollout.shadow
            else []
        )
        found += (
            [Refused("guard", "there is no candidate version to watch")] if rollout.guard else []
        )
    if not 0 <= rollout.percent <= PERCENT_MAX:
        found.append(Refused("percent", "must be 0 to 100"))
    if (
        rollout.guard is not None
        and rollout.guard.differences_percent is not None
        and not rollout.shadow
    ):
        found.append(Refused("guard", "differences are found by the shadow only: turn it on too"))
    if not 1 <= rollout.fallback_seconds <= FALLBACK_SECONDS_MAX:
        found.append(Refused("fallback_seconds", f"must be 1 to {FALLBACK_SECONDS_MAX}"))
    return found


class DifferingEventsError(Exception):
    """The candidate gave other event ids: its readings would be logged as duplicates."""

    def __init__(self, carrier_id: str, candidate: str, differing: int) -> None:
        super().__init__(
            f"candidate {candidate} gave {differing:,} events of {carrier_id} another id than the"
            " stable reading, or none: the same scan would stand in the log twice. See the"
            " differences; name a mended candidate by another version, or force it with a reason"
        )
        self.differing = differing


@dataclass(frozen=True, slots=True)
class RolloutState:
    """A carrier's own rollout, and whether its kill switch or that of all holds its messages."""

    rollout: Rollout
    held: bool


async def rollout_of(connection: AsyncConnection[Any], carrier_id: str) -> RolloutState:
    """Return the rollout of `carrier_id` (or `ALL`), or the default if it was never changed."""
    rollouts = {each.carrier_id: each for each in await list_rollouts(connection, carrier_id)}
    return RolloutState(
        rollouts.get(carrier_id, Rollout(carrier_id=carrier_id)),
        held=any(rollout.hold for rollout in rollouts.values()),
    )


async def list_rollouts(
    connection: AsyncConnection[Any], carrier_id: str | None = None
) -> list[Rollout]:
    """Return the rollouts that were ever changed, `ALL` first; `carrier_id`: its own, and `ALL`."""
    cursor = connection.cursor(row_factory=class_row(Rollout))
    return await (await cursor.execute(_SQL["rollouts"], {"carrier_id": carrier_id})).fetchall()


@dataclass(frozen=True, slots=True)
class LaggingWorkers:
    """Workers without the version that the rollout asks for.

    They read with the stable version, whatever the share is.
    """

    carrier_id: str
    candidate: str
    percent: int
    workers: list[str]
    running: int

    @property
    def sentence(self) -> str:
        few = ", ".join(self.workers[:_WORKERS_SHOWN]) + (
            ", ..." if len(self.workers) > _WORKERS_SHOWN else ""
        )
        return (
            f"{len(self.workers)} of {self.running} workers lack version {self.candidate}, which"
            f" the rollout gives {self.percent} % of the messages, and read with the stable one:"
            f" {few}"
        )


async def lagging_workers(connection: AsyncConnection[Any]) -> list[LaggingWorkers]:
    """Return each rollout that some worker cannot follow."""
    cursor = await connection.execute(_SQL["lacking"], {"silent_seconds": SILENT_SECONDS})
    return [LaggingWorkers(*row) for row in await cursor.fetchall()]


async def set_hold(
    connection: AsyncConnection[Any], *, carrier_id: str, hold: bool, why: str, actor: str
) -> None:
    """Turn the kill switch of `carrier_id` (or `ALL`); it takes effect at the next claim.

    After a release the caller wakes `statesvc.database.wakeups.wakeup.INBOX`, or the workers find
    the messages at their next sweep.
    """
    async with connection.transaction():
        await connection.execute(
            _SQL["set_hold"],
            {"carrier_id": carrier_id, "hold": hold, "changed_by": actor, "why": why},
        )
        await record_action(
            connection,
            actor=actor,
            verb="hold" if hold else "release",
            target=f"carrier {carrier_id}",
            details={"why": why},
        )
    log.info("carrier_held" if hold else "carrier_released", carrier=carrier_id)


async def set_rollout(
    connection: AsyncConnection[Any],
    carrier_id: str,
    rollout: RolloutSettings,
    *,
    why: str,
    actor: str,
    force: bool = False,
) -> None:
    """Set a candidate's share; in effect at the next claim.

    The caller has asked `refusals`, and wakes the workers.

    Raises DifferingEventsError, unless forced, where the share is to grow though the candidate was
    seen to give other event ids.
    """
    guard = rollout.guard
    async with connection.transaction():
        in_effect = await (
            await connection.execute(_SQL["lock_rollout"], {"carrier_id": carrier_id})
        ).fetchone()
        # evidence is about a pair of readers: another candidate must not inherit its counts
        if in_effect is None or in_effect[:2] != (rollout.stable, rollout.candidate):
            await connection.execute(_EVIDENCE["forget_counts"], {"carrier_id": carrier_id})
            await connection.execute(_EVIDENCE["forget_pending"], {"carrier_id": carrier_id})
        # only where the share grows: lowering it must always be possible
        elif rollout.candidate is not None and rollout.percent > in_effect[2] and not force:
            differing = (await totals_of(connection, carrier_id, rollout.candidate)).fields.get(
                EVENT, 0
            )
            if differing:
                raise DifferingEventsError(carrier_id, rollout.candidate, differing)
        # messages that were another reader's may lie below the marks
        await connection.execute(_SQL["reset_marks"], {"carrier_id": carrier_id})
        await connection.execute(
            _SQL["set_rollout"],
            {
                "carrier_id": carrier_id,
                "stable": rollout.stable,
                "candidate": rollout.candidate,
                "percent": rollout.percent,
                "shadow": rollout.shadow,
                "fallback_seconds": rollout.fallback_seconds,
                "guard_messages": guard and guard.messages,
                "guard_errors_percent": guard and guard.errors_percent,
                "guard_differences_percent": guard and guard.differences_percent,
                "changed_by": actor,
                "why": why,
            },
        )
        details: dict[str, Any] = {"why": why, "percent": rollout.percent, "shadow": rollout.shadow}
        if rollout.candidate is not None:
            details["candidate"] = rollout.candidate
        if rollout.stable is not None:
            details["stable"] = rollout.stable
        if force:
            details["forced"] = True
        if guard is not None:
            details["guard"] = (
                f"{guard.messages} messages, errors {guard.errors_percent} %, differences"
                f" {guard.differences_percent} %"
            )
        await record_action(
            connection, actor=actor, verb="rollout", target=f"carrier {carrier_id}", details=details
        )
