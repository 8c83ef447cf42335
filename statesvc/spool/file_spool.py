"""A spool in a folder of this machine: `file:///var/lib/statesvc/spool`.

Each process appends to a journal of its own, one sync for all that arrived meanwhile, and drains
it. A journal is removed as a whole: once it is drained the process begins another, and so it does
after ten minutes or 64 MiB. It also drains the journals of ended processes: their locks are free.
A spool survives a restart and a power loss of the machine, but not the loss of the disk.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog

from statesvc.spool.journal import SUFFIX, Journal
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

JOURNAL_BYTES: Final = 64 * 1024 * 1024
# Bounds the time for which a journal's first frame waits for its last to be dropped.
JOURNAL_SECONDS: Final = 600.0
# Digests of kept messages in memory: later retries of older ones are kept again.
_REMEMBERED: Final = 100_000

_log = structlog.get_logger()


class JournalSource:
    """A journal as a source."""

    def __init__(self, journal: Journal, *, has_ended: bool, keep_seconds: float) -> None:
        self.name = f"file:{journal.path.stem}"
        self.has_ended = has_ended
        self.journal = journal
        self._began_at = time.monotonic()
        self._kept = KeptPlaces(keep_seconds)
        self._dropped = 0
        # the place is the database's; until it is known nothing counts as waiting
        self.waiting = Depth(bytes=journal.size)

    @property
    def is_dropped(self) -> bool:
        """No message of it is needed any more."""
        return self._dropped >= self.journal.size

    @property
    def is_over(self) -> bool:
        """The next message belongs to another journal."""
        is_old = time.monotonic() - self._began_at >= JOURNAL_SECONDS
        return self.journal.size >= (1 if is_old or self.is_dropped else JOURNAL_BYTES)

    async def read(self, place: int) -> Portion | None:
        return await asyncio.to_thread(self._read, place)

    async def settle(self, place: int) -> None:
        self._dropped = self._kept.settled(place) or self._dropped

    async def set_aside(self, message: SpooledMessage) -> None:
        path = self.journal.path.with_suffix(f".{message.message.message_id}.refused")
        await asyncio.to_thread(_write, path, encode([message]))

    async def depth(self, place: int) -> Depth:
        frame, path = await asyncio.to_thread(self.journal.read, place), self.journal.path
        first = [] if frame is None else decode(frame.payload)
        self.waiting = Depth(
            messages=0 if frame is None else self.journal.total - frame.total + len(first),
            bytes=0 if self.is_dropped else self.journal.size,
            oldest_id=first[0].message.message_id if first else None,
            set_aside=len([*path.parent.glob(f"{path.stem}.*.refused")]),
        )
        return self.waiting

    def _read(self, place: int) -> Portion | None:
        messages: list[SpooledMessage] = []
        size = 0
        while len(messages) < PORTION_MESSAGES and size < PORTION_BYTES:
            frame = self.journal.read(place)
            if frame is None:
                break
            place = frame.end
            size += len(frame.payload)
            messages += decode(frame.payload)
        return Portion(messages, place) if messages else None


class FileSpool:
    """Open in a folder that all ingress processes of this machine share."""

    def __init__(
        self, root: Path, bounds: SpoolBounds, *, sync: Callable[[int], None] = os.fdatasync
    ) -> None:
        """Open it. Raises OSError."""
        self._root = root
        self.bounds = bounds
        self._sync = sync
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self._sources: dict[Path, JournalSource] = {}
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own: JournalSource | None = self._begin()
        self._known: dict[bytes, UUID] = {}
        self._pending_bytes = 0
        self._group: list[SpooledMessage] = []
        """Messages for the next frame."""
        self._group_bytes = 0
        self._writing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def keep(self, message: SpooledMessage) -> UUID:
        known = self._known.get(message.message.digest)
        if known is not None and age_seconds(known) < self.bounds.age_seconds_max:
            return known
        size = len(message.message.sealed)
        if (refusal := self.refusal(size)) is not None:
            raise SpoolRefusedError(refusal)
        # a frame is drained whole, so it is no larger than a portion
        is_full = self._group_bytes >= PORTION_BYTES or len(self._group) >= PORTION_MESSAGES
        if self._writing is None or not self._group or is_full:
            self._group, self._group_bytes = [], 0
            self._writing = asyncio.create_task(self._write(self._group), name="spool-write")
        writing = self._writing
        self._group.append(message)
        self._group_bytes += size
        self._pending_bytes += size
        try:
            await asyncio.shield(writing)
        except OSError as error:
            raise SpoolRefusedError(error.strerror or "disk failure") from error
        self._remember(message)
        return message.message.message_id

    async def sources(self) -> Sequence[SpoolSource]:
        if not self._lock.locked():
            self._end_what_is_over()
        found = await asyncio.to_thread(lambda: sorted(self._root.glob(f"*{SUFFIX}")))
        for path in found:
            if path not in self._sources:
                # that of a living process; or another was faster to drain it
                with suppress(BlockingIOError, FileNotFoundError):
                    adopted = await asyncio.to_thread(Journal, path)
                    _log.warning("spool_adopted", files=path.name, bytes=adopted.size)
                    self._source(adopted, has_ended=True)
        return [self._sources[path] for path in sorted(self._sources)]

    def end(self) -> None:
        if self._own is not None:
            self._own.has_ended = True
            self._own = None

    async def forget(self, source: SpoolSource) -> None:
        assert isinstance(source, JournalSource)  # noqa: S101 - of `sources`
        self._sources.pop(source.journal.path, None)
        await asyncio.to_thread(source.journal.remove)

    async def close(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._executor.shutdown(wait=False)
        for source in self._sources.values():
            source.journal.close()

    def refusal(self, size: int = 0) -> str | None:
        return self.bounds.refusal(self.waiting(), pending_bytes=self._pending_bytes, size=size)

    def waiting(self) -> Depth:
        depths = [source.waiting for source in self._sources.values()]
        return Depth(
            messages=sum(depth.messages for depth in depths),
            bytes=sum(depth.bytes for depth in depths),
            oldest_id=min((one.oldest_id for one in depths if one.oldest_id), default=None),
            set_aside=sum(depth.set_aside for depth in depths),
        )

    def _source(self, journal: Journal, *, has_ended: bool) -> JournalSource:
        source = JournalSource(journal, has_ended=has_ended, keep_seconds=self.bounds.keep_seconds)
        self._sources[journal.path] = source
        return source

    def _begin(self) -> JournalSource:
        return self._source(Journal.begin(self._root, sync=self._sync), has_ended=False)

    def _end_what_is_over(self) -> None:
        if self._own is not None and self._own.is_over:
            self.end()
            # at once: the database must know of a journal that may hold messages when it is away
            self._own = self._begin()

    async def _write(self, messages: list[SpooledMessage]) -> None:
        """Write a frame, once the one before is written: until then messages join it."""
        async with self._lock:
            if self._group is messages:
                self._group = []
            try:
                await self._append(messages)
            finally:
                self._pending_bytes -= sum(len(one.message.sealed) for one in messages)

    async def _append(self, messages: list[SpooledMessage]) -> None:
        self._end_what_is_over()
        own = self._own = self._own or self._begin()
        append = partial(own.journal.append, encode(messages), len(messages))
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, append)
        except OSError:
            # an empty one goes on, for the database knows it
            if own.journal.size:
                self.end()
            raise
        own.waiting = own.waiting.with_more(messages, own.journal.size - own.waiting.bytes)

    def _remember(self, kept: SpooledMessage) -> None:
        while len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[kept.message.digest] = kept.message.message_id


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
