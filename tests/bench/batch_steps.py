"""Batches of one message and of many, one after the other, and the processor time of each step.

A process of its own: `batch_steps URL`.

Writes {step: [seconds of a batch of one, of a large one]} as JSON, medians; steps of the worker's
own code and of its server connections.
"""

import gc
import json
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.append.append_batch import AppendBatch, WhenLocked
from statesvc.append.transaction import append_claimed
from statesvc.queue.claim import ClaimRequest, claim
from statesvc.reading.read_message import Read, read_message
from tests.bench.batch import BATCHES, LARGE
from tests.bench.inbox import keyring_of

Steps = dict[str, float]


class Batches:
    """`claimer` and `appender`: the two connections that a worker uses."""

    def __init__(
        self, claimer: AsyncConnection[Any], appender: AsyncConnection[Any], keyring: Keyring
    ) -> None:
        self._claimer = claimer
        self._appender = appender
        self._keyring = keyring

    async def one(self, messages: int) -> Steps:
        """Return seconds of processor of each step of one batch."""
        asked = ClaimRequest(
            worker="bench", limit=messages, lease_seconds=120, bytes_max=4 * 1024 * 1024
        )
        steps: Steps = {}
        own, server = time.process_time(), _used(self._claimer)
        claimed = (await claim(self._claimer, asked)).messages
        steps["claim"], own = time.process_time() - own, time.process_time()
        steps["claim in the server"] = _used(self._claimer) - server
        reads = [
            read
            for each in claimed
            if isinstance(
                read := read_message(each, keyring=self._keyring, carriers=CARRIERS), Read
            )
        ]
        steps["read"], own = time.process_time() - own, time.process_time()
        server = _used(self._appender)
        new_batch = partial(
            AppendBatch,
            keyring=self._keyring,
            messages=reads,
            worker="bench",
            when_locked=WhenLocked.POSTPONE,
        )
        await append_claimed(self._appender, new_batch, token=claimed[0].token, lock_seconds=5)
        steps["append and settle"] = time.process_time() - own
        steps["the same in the server"] = _used(self._appender) - server
        return steps


def _used(connection: AsyncConnection[Any]) -> float:
    """Return seconds of processor of its backend."""
    return int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9


async def connect(url: str) -> AsyncConnection[Any]:
    """Connect as a worker does."""
    connection = await AsyncConnection.connect(url, autocommit=True, row_factory=tuple_row)
    connection.prepare_threshold = 2
    return connection


async def main() -> None:
    async with await connect(sys.argv[1]) as claimer, await connect(sys.argv[1]) as appender:
        batches = Batches(claimer, appender, await keyring_of(claimer))
        for _ in range(BATCHES):
            await batches.one(1)
        gc.collect()
        gc.freeze()
        seen: dict[str, list[list[float]]] = defaultdict(lambda: [[], []])
        for size, messages, count in ((0, 1, BATCHES), (1, LARGE, BATCHES // 10)):
            for _ in range(count):
                for step, seconds in (await batches.one(messages)).items():
                    seen[step][size].append(seconds)
    sys.stdout.write(
        json.dumps({step: [median(small), median(large)] for step, (small, large) in seen.items()})
    )


if __name__ == "__main__":
    uvloop.run(main())
