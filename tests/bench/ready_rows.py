"""The limit of the worker: the same SQL fed with ready rows. A process of its own: `ready_rows RECORD_URL REPLAY_URL`.

On the first database the worker's own code runs, and every statement with its parameters and every wait for an answer is
written down. On a second copy the same claims are made, and the statements are sent as they were written down, in the same
transactions and round trips. What is left out is all that the worker computes.
"""

import asyncio
import gc
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import uvloop
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import tuple_row

from events.carriers import CARRIERS
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append_claimed
from statesvc.inbox.claim import Claim, Message, claim
from statesvc.inbox.read_message import Read, read_message
from tests.bench.inbox import keyring_of

BATCH: Final = 512
IN_PROGRESS: Final = 2
ASKED: Final = Claim(worker="bench", limit=BATCH, lease_seconds=120, bytes_max=4 * 1024 * 1024, sweep=False)


@dataclass(slots=True)
class Sent:
    """One statement as it was sent."""

    query: Any
    parameters: Any
    form: Any


@dataclass(slots=True)
class Batch:
    """What one transaction said, in order: statements, and (as numbers) for whose answer it waited."""

    message_ids: list[UUID]
    steps: list[Sent | int] = field(default_factory=list)


class Recorder(AsyncCursor[Any]):
    """Writes down what goes through it, while a batch is open."""

    open_batch: Batch | None = None
    numbers: int = 0

    async def execute(self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool | None = None) -> Any:
        if Recorder.open_batch is not None:
            self.number = Recorder.numbers
            Recorder.numbers += 1
            Recorder.open_batch.steps.append(Sent(query, params, self.format))
        return await super().execute(query, params, prepare=prepare, binary=binary)

    async def fetchall(self) -> Any:
        if Recorder.open_batch is not None:
            Recorder.open_batch.steps.append(self.number)
        return await super().fetchall()


async def _connect(url: str, cursors: type[AsyncCursor[Any]]) -> AsyncConnection[Any]:
    connection = await AsyncConnection.connect(url, autocommit=True, cursor_factory=cursors, row_factory=tuple_row)
    connection.prepare_threshold = 2
    return connection


async def record(url: str) -> list[Batch]:
    """Lets the worker's code do the work, and writes down how."""
    batches = []
    async with await _connect(url, Recorder) as connection:
        keyring = await keyring_of(connection)
        while messages := (await claim(connection, ASKED)).messages:
            reads = [read for message in messages if isinstance(read := read_message(message, keyring=keyring, carriers=CARRIERS), Read)]
            Recorder.open_batch, Recorder.numbers = Batch([message.message_id for message in messages]), 0
            await append_claimed(AppendBatch(connection, keyring, reads, "bench"), token=messages[0].token, lock_seconds=5)
            batches.append(Recorder.open_batch)
            Recorder.open_batch = None
    return batches


async def replay(url: str, batches: list[Batch]) -> float:
    """Sends the statements again; the seconds that it took, claims included."""
    claimer = await _connect(url, AsyncCursor)
    connections: asyncio.Queue[AsyncConnection[Any]] = asyncio.Queue()
    for _ in range(IN_PROGRESS):
        connections.put_nowait(await _connect(url, AsyncCursor))
    started = time.perf_counter()
    async with asyncio.TaskGroup() as running:
        for batch in batches:
            connection = await connections.get()
            messages = (await claim(claimer, ASKED)).messages
            if [message.message_id for message in messages] != batch.message_ids:
                raise RuntimeError("the second database handed out other messages than the first")
            running.create_task(_send(connection, connections, batch, messages))
    seconds = time.perf_counter() - started
    await claimer.close()
    while not connections.empty():
        await connections.get_nowait().close()
    return seconds


async def _send(
    connection: AsyncConnection[Any], connections: asyncio.Queue[AsyncConnection[Any]], batch: Batch, messages: list[Message]
) -> None:
    # the first statement begins the transaction, the last one commits it
    async with connection.pipeline():
        cursors: list[AsyncCursor[Any]] = []
        for step in batch.steps:
            match step:
                case Sent(query, parameters, form):
                    if parameters and "token" in parameters:
                        parameters = {**parameters, "token": messages[0].token}
                    cursor = connection.cursor()
                    cursor.format = form
                    cursors.append(await cursor.execute(query, parameters))
                case number:
                    await cursors[number].fetchall()
    connections.put_nowait(connection)


async def main() -> None:
    batches = await record(sys.argv[1])
    gc.collect()
    gc.freeze()
    seconds = await replay(sys.argv[2], batches)
    sys.stdout.write(json.dumps({"seconds": seconds, "messages": sum(len(batch.message_ids) for batch in batches)}))


if __name__ == "__main__":
    uvloop.run(main())
