"""Readers of the carriers that are shared with another fleet, and whether that fleet is there."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.reading.reading_name import OURS

_SQL = queries("statesvc.reading", "rollout_store")
# A reading not asked for in this time is probably misspelt, or its fleet is away.
ASKED_SECONDS_MAX: Final = 60.0
COUNT_MAX: Final = 10_000


class ReadingState(NamedTuple):
    """A reading of a carrier, and its fleet.

    `share` in percent; times in seconds ago, None: never.
    """

    carrier_id: str
    is_candidate: bool
    reading: str
    share: int
    fallback_seconds: int
    asked_seconds: float | None
    tried_seconds: float | None
    waiting: int
    oldest_seconds: float | None
    leased: int
    fallbacks: int
    fallback_seconds_ago: float | None

    @property
    def has_no_reader(self) -> bool:
        """True if no worker of a foreign fleet asked for it lately."""
        last = min(
            (
                seconds
                for seconds in (self.asked_seconds, self.tried_seconds)
                if seconds is not None
            ),
            default=None,
        )
        return self.reading != OURS and (last is None or last > ASKED_SECONDS_MAX)

    @property
    def name(self) -> str:
        return "our own workers" if self.reading == OURS else self.reading

    @property
    def asked(self) -> str:
        """Text for people of when it last asked for messages."""
        return (
            "has never asked for any"
            if self.asked_seconds is None
            else f"last asked for some {self.asked_seconds:.0f} s ago"
        )


async def list_readings(
    connection: AsyncConnection[Any], carrier_id: str | None = None
) -> list[ReadingState]:
    """Return the state of a carrier or of all, stable first; only those with a foreign reader."""
    cursor = await connection.execute(
        _SQL["readings"], {"carrier_id": carrier_id, "count_max": COUNT_MAX}
    )
    return [ReadingState(*row) for row in await cursor.fetchall()]


class UnreadShare(NamedTuple):
    """A share that its reader does not read.

    `is_stuck`: no other reader may take it.
    """

    carrier_id: str
    sentence: str
    is_stuck: bool


def unread_shares(readings: Sequence[ReadingState]) -> list[UnreadShare]:
    """Return the shares of readers that are silent though messages wait, or for which others had to
    read within the last hour.
    """
    found = []
    for state in readings:
        is_silent = state.asked_seconds is None or state.asked_seconds > state.fallback_seconds
        is_late = (state.oldest_seconds or 0.0) > state.fallback_seconds
        had_help = state.fallback_seconds_ago is not None and state.fallback_seconds_ago < 3600
        if state.share == 0 or not ((is_silent and is_late) or had_help):
            continue
        others = [
            other
            for other in readings
            if other.carrier_id == state.carrier_id and other is not state
        ]
        takers = [other.name for other in others if other.share > 0 or not other.is_candidate]
        what = (
            f"{state.name} reads {state.share} % and {state.asked}; {state.waiting:,} messages wait"
            " for it"
        )
        if takers:
            then = (
                f"{takers[0]} took {state.fallbacks:,} of its messages, each"
                f" {state.fallback_seconds} s late"
            )
        else:
            then = "no other reader has a share, so they wait"
        found.append(UnreadShare(state.carrier_id, f"{what}; {then}", is_stuck=not takers))
    return found
