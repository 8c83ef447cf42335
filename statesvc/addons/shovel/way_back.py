"""The way back: unprocessed messages return to their broker, from the backup, as they came.

A message leaves the inbox before it is published, for a dead letter of cause `returning`: so no
worker here processes a message that a worker there receives. Once the broker has it, the dead
letter is resolved and the receipt forgotten: if it comes again, it is new. After a crash in between
the next run finds the dead letter and publishes again, under the same task id.

A restore publishes everything in the backup, unconditionally.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.errors import Cause
from statesvc.addons.shovel.backup import read_backup
from statesvc.addons.shovel.broker_publisher import BrokerPublisher
from statesvc.addons.shovel.celery_task import UnreadableTaskError, read_task
from statesvc.addons.shovel.inbox_store import LANE, digest
from statesvc.addons.shovel.source_message import Taken
from statesvc.addons.shovel.task_mapping import identities, unread_identity
from statesvc.database.pool import Pool
from statesvc.database.queries import queries

T = TypeVar("T")

_SQL = queries("statesvc.addons.shovel", "inbox_store")
_RETURNABLE: Final = frozenset({"returning", "dead"})


@dataclass(slots=True)
class Returned:
    """The outcome of the messages of a backup.

    `again`: published once more, because an earlier run ended before it knew.
    """

    returned: int = 0
    again: int = 0
    processed: int = 0
    busy: int = 0
    elsewhere: int = 0
    """Messages of another kind of broker, or never stored here: their source has them still."""


class _Candidate(NamedTuple):
    taken: Taken
    digests: Sequence[bytes]
    """Digests of its receipt: as a mapped message, and as an unmapped one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """`report` receives the totals after every batch."""

    backup: Path
    publisher: BrokerPublisher
    pool: Pool
    keyring: Keyring
    actor: str
    batch_max: int
    stopping: Callable[[], bool]
    report: Callable[[Returned], None]

    async def give_back(self, *, dry_run: bool = False) -> Returned:
        """Give back. Raises ShovelError and SourceLostError.

        Messages already taken out then wait as dead letters, for the next run.
        """
        totals = Returned()
        for batch in _batches(self._candidates(totals), self.batch_max):
            if self.stopping():
                break
            await (self._count if dry_run else self._give_back)(batch, totals)
            self.report(totals)
        return totals

    def _candidates(self, totals: Returned) -> Iterator[_Candidate]:
        for taken, known_as in stored_messages(self.backup):
            if taken.transport is self.publisher.transport:
                yield _Candidate(taken, [digest(self.keyring, identity) for identity in known_as])
            else:
                totals.elsewhere += 1

    async def _count(self, batch: Sequence[_Candidate], totals: Returned) -> None:
        async with self.pool.connection() as connection:
            states = await _states(connection, batch)
        for one in batch:
            _, state = _found(one, states)
            _add(totals, state)

    async def _give_back(self, batch: Sequence[_Candidate], totals: Returned) -> None:
        # before any message is taken out: a missing queue must not leave them as dead letters
        await self.publisher.check([one.taken for one in batch])
        async with self.pool.connection() as connection:
            async with connection.transaction():
                before = await _states(connection, batch)
                await _take_out(connection, batch)
                after = await _states(connection, batch)
            out = [(one, _found(one, after)) for one in batch]
            returning = [
                (one, message_id)
                for one, (message_id, state) in out
                if state in _RETURNABLE and message_id is not None
            ]
            if returning:
                # after the commit: no worker here can claim a message that the broker is about to
                # get
                await self.publisher.publish([one.taken for one, _ in returning])
                parameters = {
                    "message_ids": [message_id for _, message_id in returning],
                    "digests": [each for one, _ in returning for each in one.digests],
                    "actor": self.actor,
                }
                # only now: after a crash before this, the next run publishes again under the same
                # task id
                await connection.execute(_SQL["forget_returned"], parameters)
        for one, (_, state) in out:
            _, earlier = _found(one, before)
            _add(totals, earlier if state in _RETURNABLE else state)


async def restore(
    backup: Path,
    publisher: BrokerPublisher,
    *,
    batch_max: int,
    stopping: Callable[[], bool],
    report: Callable[[int], None],
) -> int:
    """Publish each message of the backup once; return how many there were."""
    done = 0
    for batch in _batches(
        (taken for taken, _ in stored_messages(backup) if taken.transport is publisher.transport),
        batch_max,
    ):
        if stopping():
            break
        await publisher.check(batch)
        await publisher.publish(batch)
        done += len(batch)
        report(done)
    return done


def stored_messages(backup: Path) -> Iterator[tuple[Taken, Sequence[bytes]]]:
    """Yield each message once, with its identities.

    A message taken again after a crash is in the backup twice.
    """
    seen: set[bytes] = set()
    now = datetime.now(UTC)
    for batch in read_backup(backup):
        for taken in batch:
            try:
                known_as: Sequence[bytes] = identities(read_task(taken, now=now))
            except UnreadableTaskError:
                known_as = [unread_identity(taken.body)]
            short = hashlib.blake2b(known_as[0], digest_size=16).digest()
            if short not in seen:
                seen.add(short)
                yield taken, known_as


async def _states(
    connection: AsyncConnection[Any], batch: Sequence[_Candidate]
) -> dict[bytes, tuple[UUID, str]]:
    digests = [each for one in batch for each in one.digests]
    rows = await (
        await connection.execute(_SQL["states"], {"digests": digests, "lane": LANE})
    ).fetchall()
    return {bytes(found): (message_id, state) for found, message_id, state in rows}


async def _take_out(connection: AsyncConnection[Any], batch: Sequence[_Candidate]) -> None:
    digests = [each for one in batch for each in one.digests]
    ids = [
        row[0]
        for row in await (
            await connection.execute(_SQL["lock_unprocessed"], {"digests": digests})
        ).fetchall()
    ]
    if ids:
        causes, details = (
            [Cause.RETURNING.value] * len(ids),
            ["on its way back to its broker"] * len(ids),
        )
        await connection.execute(
            _SQL["bury"], {"message_ids": ids, "causes": causes, "details": details}
        )


def _found(one: _Candidate, states: dict[bytes, tuple[UUID, str]]) -> tuple[UUID | None, str]:
    """Return where it is: a message that did not map at first, and does now, has two receipts."""
    return next((states[each] for each in one.digests if each in states), (None, "unknown"))


def _add(totals: Returned, state: str) -> None:
    match state:
        case "free" | "dead":
            totals.returned += 1
        case "returning":
            totals.again += 1
        case "busy":
            totals.busy += 1
        case "done":
            totals.processed += 1
        case _:
            totals.elsewhere += 1


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
