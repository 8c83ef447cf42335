"""The work of one message as a job of another queue: normalize, append, project, tell, in one
transaction of its own.

It is our own code on one message. What ends the job is the peer's own; our settle is left
out, in the peer's favour.
"""

from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from statesvc.queue.claim import Burial, Message
from statesvc.reading.read_message import read_message
from tests.bench.inbox import keyring_of

CONNECTIONS = 8
_FIND: LiteralString = """
SELECT q.message_id, q.carrier_id, gen_random_uuid(), q.attempts, q.retries, q.received_at, q.stage, NULL, 0, false,
    q.sealed_key, b.commitment, b.sealed
FROM statesvc.inbox q JOIN statesvc.body b ON b.message_id = q.message_id AND b.received_at = q.received_at
WHERE q.message_id = %s
"""
IDS: LiteralString = "SELECT message_id FROM statesvc.inbox ORDER BY available_at, message_id"


class SameWork:
    """Does one message after the other, many at a time."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]], keyring: Keyring) -> None:
        self._pool = pool
        self._keyring = keyring

    async def do(self, message_id: UUID) -> None:
        """Do the work. Raises where the message cannot be read."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(_FIND, (message_id,), binary=True)).fetchone()
            if row is None:
                raise LookupError(message_id)
            match read_message(Message(*row), keyring=self._keyring, carriers=CARRIERS):
                case Burial(detail=detail):
                    raise RuntimeError(detail)
                case read:
                    async with connection.pipeline(), connection.transaction():
                        await append(AppendBatch(connection, self._keyring, [read], "bench"))


async def same_work(url: str) -> tuple[SameWork, AsyncConnectionPool[AsyncConnection[Any]]]:
    """Open the work and its pool; connections prepare as early as ours do."""

    async def configure(connection: AsyncConnection[Any]) -> None:
        connection.prepare_threshold = 2

    pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
        url,
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        kwargs={"autocommit": True},
        configure=configure,
        timeout=300,
        open=False,
    )
    await pool.open(wait=True)
    async with pool.connection() as connection:
        keyring = await keyring_of(connection)
    return SameWork(pool, keyring), pool


async def message_ids(url: str) -> list[UUID]:
    """Return the messages that wait, in inbox order."""
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        return [message_id for (message_id,) in await (await connection.execute(IDS)).fetchall()]
