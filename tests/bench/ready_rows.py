"""The limit of the worker: the same SQL fed with ready rows.

A process of its own: `ready_rows RECORD_URL REPLAY_URL`.

On the first database the worker's own code runs, and every statement with its parameters and every
wait for an answer is written down. On a second copy the same claims are made, and the statements
are sent as they were written down, in the same transactions and round trips. What is left out is
all that the worker computes.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

import uvloop
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from events.carriers import CARRIERS
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append_claimed
from statesvc.database.pipelined import Pipeline, PipelinedRows, pipelined_transaction
from statesvc.queue.claim import ClaimRequest, Message, claim
from statesvc.reading.read_message import Read, read_message
from tests.bench.inbox import keyring_of

BATCH: Final = 512
ASKED: Final = ClaimRequest(
    worker="bench", limit=BATCH, lease_seconds=120, bytes_max=4 * 1024 * 1024, sweep=False
)


WAIT: Final = None


@dataclass(slots=True)
class Sent:
    """One statement as it was sent."""

    query: Any
    parameters: Any
    form: dict[str, Any]


@dataclass(slots=True)
class Batch:
    """Statements of one transaction, in order, and where it waited for the answers to them
    (`WAIT`).
    """

    message_ids: list[UUID]
    steps: list[Sent | None] = field(default_factory=list)


@contextmanager
def recorded(batch: Batch) -> Iterator[None]:
    """Record what goes through pipelines meanwhile; their first and last statement are
    those of any transaction.
    """
    execute, flush = Pipeline.execute, Pipeline.flush

    async def recording(
        self: Pipeline, query: Any, params: Any = None, **form: Any
    ) -> PipelinedRows:
        if params is not None:
            batch.steps.append(Sent(query, params, form))
        return await execute(self, query, params, **form)

    async def waiting(self: Pipeline) -> None:
        batch.steps.append(WAIT)
        await flush(self)

    with patch.object(Pipeline, "execute", recording), patch.object(Pipeline, "flush", waiting):
        yield


async def _connect(url: str) -> AsyncConnection[Any]:
    connection = await AsyncConnection.connect(url, autocommit=True, row_factory=tuple_row)
    connection.prepare_threshold = 2
    return connection


async def record(url: str) -> list[Batch]:
    """Let the worker's code do the work, and record how."""
    batches = []
    async with await _connect(url) as connection:
        keyring = await keyring_of(connection)
        while messages := (await claim(connection, ASKED)).messages:
            reads = [
                read
                for message in messages
                if isinstance(
                    read := read_message(message, keyring=keyring, carriers=CARRIERS), Read
                )
            ]
            batches.append(Batch([message.message_id for message in messages]))
            with recorded(batches[-1]):
                new_batch = partial(AppendBatch, keyring=keyring, messages=reads, worker="bench")
                await append_claimed(connection, new_batch, token=messages[0].token, lock_seconds=5)
    return batches


async def replay(url: str, batches: list[Batch]) -> float:
    """Send the statements again; return the seconds that it took, claims included.

    One batch after the other, because the next one moves on the streams that this one makes; its
    messages are claimed meanwhile.
    """
    async with await _connect(url) as claimer, await _connect(url) as connection:
        started = time.perf_counter()
        sending: asyncio.Task[None] | None = None
        for batch in batches:
            messages = (await claim(claimer, ASKED)).messages
            if [message.message_id for message in messages] != batch.message_ids:
                raise RuntimeError("the second database handed out other messages than the first")
            if sending is not None:
                await sending
            sending = asyncio.create_task(_send(connection, batch, messages))
        if sending is not None:
            await sending
        return time.perf_counter() - started


async def _send(connection: AsyncConnection[Any], batch: Batch, messages: list[Message]) -> None:
    async with pipelined_transaction(connection) as pipeline:
        for step in batch.steps:
            if step is WAIT:
                await pipeline.flush()
            else:
                named = {"token": messages[0].token} if "token" in step.parameters else {}
                await pipeline.execute(step.query, {**step.parameters, **named}, **step.form)


async def main() -> None:
    batches = await record(sys.argv[1])
    gc.collect()
    gc.freeze()
    seconds = await replay(sys.argv[2], batches)
    sys.stdout.write(
        json.dumps(
            {"seconds": seconds, "messages": sum(len(batch.message_ids) for batch in batches)}
        )
    )


if __name__ == "__main__":
    uvloop.run(main())
