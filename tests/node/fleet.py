"""Workers of both kinds on one inbox, killed and replaced."""

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Self

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from tests.acceptance.processes import RoleProcess, Service
from tests.node.node_worker import node_example, start_worker
from tests.world.forked import ForkedProcess


class Fleet:
    """Python and Node.js workers on one inbox; a killed one is replaced at once."""

    def __init__(self, service: Service, keyring: Keyring, reader_dsn: str, folder: Path) -> None:
        self._service = service
        self._keyring = keyring
        self._reader_dsn = reader_dsn
        self._log = folder / "node.log"
        self._example = node_example(folder)
        # what a killed one held is free again soon
        program = self._example.read_text("utf-8").replace("'30 s'", "'3 s'")
        self._example.write_text(program.replace("30_000", "1_000"))
        self.python: list[RoleProcess] = []
        self.node: list[asyncio.subprocess.Process] = []
        self.killed_at_work = {"python": 0, "node": 0}

    async def __aenter__(self) -> Self:
        for _ in range(2):
            await self._start_node()
        self.python += await self._service.start("worker", "worker")
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.node:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start_node(self) -> None:
        self.node.append(
            await start_worker(
                self._reader_dsn, self._keyring.inbox.key, self._log, ("node", str(self._example))
            )
        )

    async def kill_one(self, kind: str, chance: random.Random) -> None:
        """Kill the first of a kind that is seen to hold a lease; where the work is
        done before, one without.
        """
        processes = self.node if kind == "node" else [role.process for role in self.python]
        victim = chance.choice(processes)
        async with await AsyncConnection.connect(
            self._service.owner_dsn, autocommit=True
        ) as connection:

            async def at_work(process: asyncio.subprocess.Process | ForkedProcess) -> bool:
                query = "SELECT FROM statesvc.inbox WHERE token IS NOT NULL AND worker ~ %s LIMIT 1"
                return (
                    await (await connection.execute(query, (rf"\y{process.pid}\y",))).fetchone()
                    is not None
                )

            while (
                await (await connection.execute("SELECT FROM statesvc.inbox LIMIT 1")).fetchone()
                is not None
            ):
                if busy := [process for process in processes if await at_work(process)]:
                    victim = busy[0]
                    break
                await asyncio.sleep(chance.uniform(0, 0.002))
            victim.kill()
            await victim.wait()
            self.killed_at_work[kind] += await at_work(victim)
        if kind == "node":
            self.node = [process for process in self.node if process is not victim]
            await self._start_node()
        else:
            self.python = [role for role in self.python if role.process is not victim]
            self.python += await self._service.start("worker")

    async def stop_node(self) -> None:
        """Ask them to go; each ends with 0."""
        for process in self.node:
            process.terminate()
        assert [await asyncio.wait_for(process.wait(), 20) for process in self.node] == [0] * len(
            self.node
        )
        self.node.clear()
