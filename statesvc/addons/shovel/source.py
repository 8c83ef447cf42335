"""Interface of a source of messages: batches that stay its own until they are acknowledged;
and why a transfer fails.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from statesvc.addons.shovel.source_message import Taken


class ShovelError(ValueError):
    """An error for the person at the terminal, with its remedy.

    No message of this batch was taken from the source.
    """


class SourceLostError(OSError):
    """The connection to the broker ended; unacknowledged messages wait there."""


Wants = Callable[[Taken], bool]
"""Predicate of messages to take; the others stay for the workers that they are for."""


class Unacknowledged(NamedTuple):
    """Messages that workers hold and have not acknowledged, above all tasks that wait for their
    ETA: how many, and the first of them.
    """

    total: int
    messages: Sequence[Taken]


class Source(Protocol):
    """Open before use. Every call may raise SourceLostError: then close, and open again."""

    async def open(self) -> None:
        """Open the source.

        Raises ShovelError where it can't be read, SourceLostError where it does not answer.
        """

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        """Take up to `limit` available messages; wait this long at most for the first."""

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Acknowledge the last batch; the source removes it."""

    async def waiting(self) -> int:
        """Count the messages there that no consumer has taken."""

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Return some of those that wait, without taking them. Before `take`, or not at all."""

    async def unacknowledged(self, limit: int) -> Unacknowledged | None:
        """Return the messages that workers hold, which `waiting` does not count.

        None: unknown to the broker.
        """

    async def close(self) -> None:
        """Close; unacknowledged messages wait there again. Safe to call twice."""
