"""A spool: durable storage for sealed messages until the database takes them.

    keep > [ spool ] > read, the oldest first > `put` commits > settle

A message is kept as ingress sealed it: no body in clear, its digest recognises retries. Places
grow with time and are never used again, so a place says how far a spool is drained. A message may
be read several times; `put` makes that one message.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from pydantic import ConfigDict, TypeAdapter

from statesvc.bodies.sealed_message import SealedMessage, unix_ms_of

PORTION_MESSAGES: Final = 32
PORTION_BYTES: Final = 1024 * 1024
# Bytes that may wait for the spool.
PENDING_BYTES_MAX: Final = 32 * 1024 * 1024
_MARKS: Final = 100


class SpoolRefusedError(Exception):
    """The spool does not keep the message: `str` has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolBounds:
    bytes_max: int
    age_seconds_max: float
    keep_seconds: float = 0

    @property
    def held_seconds_max(self) -> float:
        """How long a message may stay in the spool: it waits, and is kept after that."""
        return self.age_seconds_max + self.keep_seconds

    def refusal(self, depth: "Depth", *, pending_bytes: int, size: int) -> str | None:
        """Return why a message of this size is not kept now; None: it is."""
        if pending_bytes + size > PENDING_BYTES_MAX:
            return "it does not keep up"
        if depth.bytes + pending_bytes + size > self.bytes_max:
            return f"it is full, with {depth.bytes:,} bytes"
        if depth.oldest_id is not None and age_seconds(depth.oldest_id) > self.age_seconds_max:
            return "its oldest message waits for too long"
        return None


@dataclass(frozen=True, slots=True)
class SpooledMessage:
    """`received_at`: time of the ACK by the database's clock, as far as it was known."""

    message: SealedMessage
    received_at: datetime


_JSON: Final = TypeAdapter(
    list[SpooledMessage], config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
)


@dataclass(frozen=True, slots=True)
class Portion:
    """Messages from a place on, and the place behind them."""

    messages: Sequence[SpooledMessage]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Messages that wait for the database, and bytes in use, those of kept rows included."""

    messages: int = 0
    bytes: int = 0
    oldest_id: UUID | None = None
    set_aside: int = 0
    """Messages that the database refuses for themselves."""

    def with_more(self, messages: Sequence[SpooledMessage], size: int) -> "Depth":
        """Return it with messages that were kept since."""
        return replace(
            self,
            messages=self.messages + len(messages),
            bytes=self.bytes + size,
            oldest_id=self.oldest_id or messages[0].message.message_id,
        )


class KeptPlaces:
    """Places of stored messages, for as long as they stay in the spool."""

    def __init__(self, keep_seconds: float) -> None:
        self._keep_seconds = keep_seconds
        self._settled: deque[tuple[float, int]] = deque()

    def settled(self, place: int) -> int | None:
        """Note the place; return the one before which messages may be dropped now."""
        now, settled = time.monotonic(), self._settled
        if settled and now - settled[-1][0] < self._keep_seconds / _MARKS:
            settled[-1] = (settled[-1][0], place)
        elif not settled or place != settled[-1][1]:
            settled.append((now, place))
        dropped = None
        while settled and now - settled[0][0] >= self._keep_seconds:
            dropped = settled.popleft()[1]
        return dropped


class SpoolSource(Protocol):
    """Messages to be drained, by one process at a time.

    `name` is never used again. `has_ended`: no process adds to it.
    """

    name: str
    has_ended: bool

    async def read(self, place: int) -> Portion | None:
        """Return the next messages behind the place; None: there are none."""

    async def settle(self, place: int) -> None:
        """Drop messages before the place, once they have been kept as long as they should be."""

    async def set_aside(self, message: SpooledMessage) -> None:
        """Keep a message that the database refuses out of the way of the others."""

    async def depth(self, place: int) -> Depth:
        """Return the depth, where all before the place is drained."""


class Spool(Protocol):
    """A spool as an ingress process uses it."""

    bounds: SpoolBounds

    def refusal(self) -> str | None:
        """Return why no message is kept now; None: it takes them."""

    async def keep(self, message: SpooledMessage) -> UUID:
        """Keep a message; return its id, or that of the same message kept before.

        Durable when it returns. Raises SpoolRefusedError.
        """

    def waiting(self) -> Depth:
        """Return the depth as it was last seen."""

    async def sources(self) -> Sequence[SpoolSource]:
        """Return the sources that this process drains."""

    def end(self) -> None:
        """Keep no more: sources that only this process adds to have ended."""

    async def forget(self, source: SpoolSource) -> None:
        """Remove an empty source that has ended."""

    async def close(self) -> None:
        """Close it. Messages stay."""


def age_seconds(message_id: UUID) -> float:
    return time.time() - unix_ms_of(message_id) / 1000


def encode(spooled: list[SpooledMessage]) -> bytes:
    return _JSON.dump_json(spooled)


def decode(data: bytes) -> list[SpooledMessage]:
    return _JSON.validate_json(data)
