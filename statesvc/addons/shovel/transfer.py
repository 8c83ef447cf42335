"""The loop of a transfer: take a batch, map it, store it and back it up, acknowledge it.

Whatever ends before the acknowledgement is repeated: the source hands the batch out again, and the
inbox knows its messages. While the database or the broker is away the loop waits for it; a message
that stops the transfer leaves its whole batch at the source.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import psycopg
from psycopg_pool import PoolTimeout

from events.crypto.keyring import Keyring
from statesvc.addons.shovel.backup import BackupWriter
from statesvc.addons.shovel.inbox_store import StoredMessages, resolve_mapped, store
from statesvc.addons.shovel.source_message import ShovelError, Source, SourceLostError, Taken
from statesvc.addons.shovel.task_mapping import Mapped, TaskMapping, Unmapped
from statesvc.background.waiting import set_within
from statesvc.database.pool import Pool
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import INBOX, notify

_IDLE_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 1.0
_PASSING: Final = frozenset({Failure.UNAVAILABLE, Failure.TRANSIENT, Failure.MISROUTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTask:
    """A transfer with its dependencies.

    `stop`: ends it after the batch; `notice`: hears in words why it waits.
    """

    source: Source
    mapping: TaskMapping
    pool: Pool
    keyring: Keyring
    backup: BackupWriter | None
    """None: the messages come from a backup."""
    actor: str
    batch_max: int
    until_empty: bool
    per_second: float | None
    """None: as fast as it goes."""
    stop: asyncio.Event
    report: Callable[[StoredMessages], None]
    notice: Callable[[str], None]
    totals: StoredMessages = field(default_factory=StoredMessages)


async def transfer(task: TransferTask) -> StoredMessages:
    """Transfer until it is stopped, or the source is empty.

    Raises ShovelError; a source that is lost is opened again.
    """
    while not task.stop.is_set():
        try:
            try:
                await task.source.open()
            except ShovelError as error:
                # it was open before: a starting broker refuses its existing queues for a while
                raise SourceLostError(str(error)) from error
            await _run(task)
            break
        except SourceLostError as error:
            task.notice(f"{error}; trying again")
            await set_within(task.stop, _AGAIN_SECONDS)
        finally:
            # an open consumer holds messages that the old workers wait for
            await task.source.close()
    if task.backup is not None:
        task.backup.close()
    return task.totals


async def _run(task: TransferTask) -> None:
    """Transfer batches until the source is empty, or the transfer is stopping."""
    # a slow pace does not come in bursts of more than a second
    limit = max(1, int(min(task.batch_max, task.per_second or task.batch_max)))
    while not task.stop.is_set():
        batch = await task.source.take(limit, wait_seconds=_IDLE_SECONDS)
        if not batch:
            # asked only when nothing came: counting a shared queue reads all of it
            if task.until_empty and not await task.source.waiting():
                return
            continue
        if not await _move(task, batch):
            return
        if task.per_second is not None:
            await set_within(task.stop, len(batch) / task.per_second)


async def _move(task: TransferTask, batch: Sequence[Taken]) -> bool:
    now = datetime.now(UTC)
    mapped = [(taken, task.mapping.read(taken, now=now)) for taken in batch]
    if task.backup is None:
        stored = await _store(task, mapped, now)
    else:
        stored, _ = await asyncio.gather(
            # both before the acknowledgement; their order among each other does not matter
            _store(task, mapped, now),
            asyncio.to_thread(task.backup.append, batch),
        )
    if stored is None:
        return False
    # only now: inbox and backup have the batch, so a crash before this repeats it and loses none
    await task.source.acknowledge(batch)
    task.totals.add(stored)
    task.report(task.totals)
    return True


async def _store(
    task: TransferTask, mapped: Sequence[tuple[Taken, Mapped | Unmapped]], now: datetime
) -> StoredMessages | None:
    """Try until the database has it: whether an earlier try had an effect does not matter.

    None: stopped before.
    """
    is_away = False
    while True:
        try:
            async with task.pool.connection() as connection:
                stored = await store(connection, task.keyring, mapped, now=now)
                if task.backup is None:
                    await resolve_mapped(
                        connection, task.keyring, [found for _, found in mapped], actor=task.actor
                    )
                if stored.moved:
                    await notify(connection, INBOX)
        except (psycopg.Error, PoolTimeout, OSError) as error:
            if failure(error) not in _PASSING:
                raise
            if not is_away:
                task.notice("the database does not answer; trying again")
            is_away = True
            if task.stop.is_set():
                return None
            await set_within(task.stop, _AGAIN_SECONDS)
        else:
            return stored
