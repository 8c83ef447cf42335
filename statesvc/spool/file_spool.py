"""A spool in a folder of this machine: `file:///var/lib/statesvc/spool`.

Each process appends to a journal in a folder of its own, one sync for all that arrived meanwhile,
and drains it. It also drains the journals of ended processes: their locks are free. It survives a
restart and a power loss of the machine, but not the loss of the disk.
"""

import asyncio
import os
import secrets
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final, ParamSpec, TypeVar
from uuid import UUID

import structlog

from statesvc.spool.journal import Journal, JournalInUseError
from statesvc.spool.spool import (
    PORTION_BYTES,
    PORTION_MESSAGES,
    Depth,
    KeptPlaces,
    Portion,
    SpoolBounds,
    SpooledMessage,
    SpoolRefusedError,
    SpoolSource,
    age_seconds,
    decode,
    encode,
)

_FRAME_BYTES: Final = 1024 * 1024
# Digests of kept messages in memory: later retries of older ones are kept again.
_REMEMBERED: Final = 100_000
_SET_ASIDE: Final = "*.refused"

_log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame in memory. `before`: how many messages the journal has before it."""

    end: int
    before: int
    oldest_id: UUID


class JournalSource:
    """A journal as a source. Its calls run in the spool's thread, one at a time."""

    def __init__(
        self,
        journal: Journal,
        *,
        has_ended: bool,
        keep_seconds: float,
        executor: ThreadPoolExecutor,
    ) -> None:
        self.name = f"file:{journal.folder.name}"
        self.has_ended = has_ended
        self.journal = journal
        self._executor = executor
        self._frames: list[_Frame] = []
        self._messages = self._set_aside = 0
        self._kept = KeptPlaces(keep_seconds)
        # the place is the database's; until it is known nothing counts as waiting
        self._place = 0
        while (found := journal.read(self._place)) is not None:
            payload, self._place = found
            self._note(decode(payload), self._place)

    async def read(self, place: int) -> Portion | None:
        return await self.in_thread(self._read, place)

    async def settle(self, place: int) -> None:
        if (dropped := self._kept.settled(place)) is not None:
            await self.in_thread(self.journal.drop_before, dropped)
            del self._frames[: self._first_behind(dropped)]

    async def set_aside(self, message: SpooledMessage) -> None:
        path = self.journal.folder / f"{message.message.message_id}.refused"
        await self.in_thread(_write, path, encode([message]))

    async def depth(self, place: int) -> Depth:
        self._place = place
        self._set_aside = len([*self.journal.folder.glob(_SET_ASIDE)])
        return self.waiting()

    def waiting(self) -> Depth:
        """Return the depth as it was last seen."""
        first = self._first_behind(self._place)
        oldest = self._frames[first] if first < len(self._frames) else None
        return Depth(
            messages=0 if oldest is None else self._messages - oldest.before,
            bytes=self.journal.size,
            oldest_id=None if oldest is None else oldest.oldest_id,
            set_aside=self._set_aside,
        )

    async def append(self, messages: list[SpooledMessage]) -> None:
        """Append a frame. Durable when it returns. Raises OSError."""
        self._note(messages, await self.in_thread(self.journal.append, encode(messages)))

    async def in_thread(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        call = partial(function, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def _note(self, messages: list[SpooledMessage], end: int) -> None:
        self._frames.append(_Frame(end, self._messages, messages[0].message.message_id))
        self._messages += len(messages)

    def _first_behind(self, place: int) -> int:
        return bisect_right(self._frames, place, key=attrgetter("end"))

    def _read(self, place: int) -> Portion | None:
        messages: list[SpooledMessage] = []
        size = 0
        while len(messages) < PORTION_MESSAGES and size < PORTION_BYTES:
            found = self.journal.read(place)
            if found is None:
                break
            payload, place = found
            size += len(payload)
            messages += decode(payload)
        return Portion(messages, place) if messages else None


class FileSpool:
    """Open in a folder that all ingress processes of this machine share."""

    def __init__(
        self, root: Path, bounds: SpoolBounds, *, sync: Callable[[int], None] = os.fdatasync
    ) -> None:
        """Open it. Raises OSError."""
        self._root = root
        self.bounds = bounds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="spool")
        name = f"{time.time_ns() // 1_000_000_000:x}-{os.getpid()}-{secrets.token_hex(8)}"
        self._own = self._source(Journal(root / name, sync=sync), has_ended=False)
        self._adopted: dict[Path, JournalSource] = {}
        self._known: dict[bytes, UUID] = {}
        self._pending: deque[tuple[SpooledMessage, asyncio.Future[UUID]]] = deque()
        self._pending_bytes = 0
        self._flushing: asyncio.Task[None] | None = None

    async def keep(self, message: SpooledMessage) -> UUID:
        known = self._known.get(message.message.digest)
        if known is not None and age_seconds(known) < self.bounds.age_seconds_max:
            return known
        size = len(message.message.sealed)
        if (refusal := self.refusal(size)) is not None:
            raise SpoolRefusedError(refusal)
        kept: asyncio.Future[UUID] = asyncio.get_running_loop().create_future()
        self._pending.append((message, kept))
        self._pending_bytes += size
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush(), name="spool-flush")
        return await kept

    async def sources(self) -> Sequence[SpoolSource]:
        for folder in await asyncio.to_thread(lambda: [*self._root.iterdir()]):
            if folder == self._own.journal.folder or folder in self._adopted or not folder.is_dir():
                continue
            try:
                adopted = await asyncio.to_thread(self._source, Journal(folder), has_ended=True)
            except (JournalInUseError, FileNotFoundError):
                continue
            _log.warning("spool_adopted", files=folder.name, bytes=adopted.journal.size)
            self._adopted[folder] = adopted
        return [self._own, *self._adopted.values()]

    def end(self) -> None:
        self._own.has_ended = True

    async def forget(self, source: SpoolSource) -> None:
        assert isinstance(source, JournalSource)  # noqa: S101 - of `sources`
        self._adopted.pop(source.journal.folder, None)
        await source.in_thread(source.journal.remove)

    async def close(self) -> None:
        if self._flushing is not None:
            await self._flushing
        await asyncio.to_thread(self._executor.shutdown)
        for source in (self._own, *self._adopted.values()):
            source.journal.close()

    def _source(self, journal: Journal, *, has_ended: bool) -> JournalSource:
        return JournalSource(
            journal,
            has_ended=has_ended,
            keep_seconds=self.bounds.keep_seconds,
            executor=self._executor,
        )

    def refusal(self, size: int = 0) -> str | None:
        return self.bounds.refusal(self.waiting(), pending_bytes=self._pending_bytes, size=size)

    def waiting(self) -> Depth:
        depths = [source.waiting() for source in (self._own, *self._adopted.values())]
        return Depth(
            messages=sum(depth.messages for depth in depths),
            bytes=sum(depth.bytes for depth in depths),
            oldest_id=min((one.oldest_id for one in depths if one.oldest_id), default=None),
            set_aside=sum(depth.set_aside for depth in depths),
        )

    async def _flush(self) -> None:
        while self._pending:
            group: list[tuple[SpooledMessage, asyncio.Future[UUID]]] = []
            size = 0
            while self._pending and size < _FRAME_BYTES and len(group) < PORTION_MESSAGES:
                group.append(self._pending.popleft())
                size += len(group[-1][0].message.sealed)
            try:
                await self._own.append([message for message, _ in group])
            except OSError as error:
                _log.exception("spool_not_written")
                for _, kept in group:
                    if not kept.done():
                        kept.set_exception(SpoolRefusedError(error.strerror or "disk failure"))
            else:
                for message, kept in group:
                    self._remember(message)
                    if not kept.done():
                        kept.set_result(message.message.message_id)
            self._pending_bytes -= size

    def _remember(self, kept: SpooledMessage) -> None:
        while len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[kept.message.digest] = kept.message.message_id


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
