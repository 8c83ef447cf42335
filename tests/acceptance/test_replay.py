"""Dead letters replayed by the command, next to workers, killed and raced: all applied once, and
the record says who did it.
"""

import asyncio
import json
import os
import pty
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.database.wakeups.wakeup import INBOX, notify
from statesvc.ingress.group_commit import put
from tests.acceptance.processes import MASTER_KEY, ROOT, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.waiting import until
from tests.world.worker_harness import CARRIER_ID

REPLAY = ("dead-letters", "replay", "--carrier", CARRIER_ID)
FAILED = (*REPLAY, "--cause", "normalizer_failed", "--why", "normalizer mended")
PUT_AT_ONCE = 500
OPEN = "SELECT count(*) FROM statesvc.dead_letter WHERE resolved_at IS NULL"


class ReplayService(Service):
    """Roles and commands that know the shop's carrier; commands know its mended normalizer."""

    launcher = "tests.statesvc.repair.dead_letters.launcher"

    async def push(self, bodies: Sequence[bytes]) -> None:
        async with await AsyncConnection.connect(self.service_dsn, autocommit=True) as connection:
            keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
            for start in range(0, len(bodies), PUT_AT_ONCE):
                sealed = [
                    seal_message(keyring, CARRIER_ID, body, "{}")
                    for body in bodies[start : start + PUT_AT_ONCE]
                ]
                await put(connection, sealed)
            await notify(connection, INBOX)

    async def bury(self, count: int) -> None:
        """Bury messages that the workers of today fail on; then push their
        successors, which do not.
        """
        (worker,) = await self.start("worker")
        await self.push([unread(number) for number in range(count)])
        await self.drained(300)
        assert await self.value(OPEN) == count
        worker.kill()
        await worker.exit_code()
        await self.start("worker", MENDED="1")

    async def begin(self, *arguments: str, stderr: int = PIPE) -> Process:
        environment = {**self.environment, "MENDED": "1"}
        return await asyncio.create_subprocess_exec(
            *self.program, *arguments, env=environment, cwd=ROOT, stdout=PIPE, stderr=stderr
        )

    async def assert_applied_once(self, count: int) -> None:
        await self.drained(120)
        assert await self.value(OPEN) == 0
        assert await self.value("SELECT count(*) FROM statesvc.message") == count
        assert await self.value("SELECT count(*) FROM statesvc.event") == count
        assert (
            await self.value("SELECT count(DISTINCT (carrier_id, event_id)) FROM statesvc.event")
            == count
        )
        assert (
            await self.value("SELECT count(*) FROM statesvc.shipment WHERE status = 'in_transit'")
            == count
        )
        assert await self.value("SELECT count(*) FROM statesvc.dead_letter") == count, (
            "none was buried again"
        )


@asynccontextmanager
async def dead_letters(
    service_maker: ServiceMaker, folder: Path, count: int
) -> AsyncIterator[ReplayService]:
    async with await service_maker(folder, kind=ReplayService) as service:
        await service.bury(count)
        yield service


async def _replay_all(service: ReplayService, count: int, *options: str) -> float:
    """Replay by one command, as a person at a terminal gives it; return its seconds."""
    master, slave = pty.openpty()
    began = time.monotonic()
    process = await service.begin(*FAILED, *options, stderr=slave)
    os.close(slave)
    drawn = bytearray()
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            drawn.extend(os.read(master, 65536))
        except OSError:
            loop.remove_reader(master)

    loop.add_reader(master, read)
    output, _ = await process.communicate()
    seconds = time.monotonic() - began
    loop.remove_reader(master)
    os.close(master)
    assert process.returncode == 0, output.decode() + drawn.decode()
    assert f"{count:,} dead letters replayed" in output.decode()
    assert f"[{'#' * 40}] {count:,}/{count:,} replayed".encode() in drawn, "a bar that fills up"
    return seconds


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_dead_letters_of_one_cause_are_replayed_by_one_command_with_a_bar(
    service_maker: ServiceMaker, tmp_path: Path, count: int
) -> None:
    async with dead_letters(service_maker, tmp_path, count) as service:
        seconds = await _replay_all(service, count)
        await service.assert_applied_once(count)
        rows = await service.rows("SELECT canonical FROM statesvc.action ORDER BY recorded_at")
        begun, ended = (json.loads(canonical) for (canonical,) in rows)
        assert (begun["verb"], begun["details"]["dead_letters"], begun["details"]["why"]) == (
            "replay_begun",
            count,
            "normalizer mended",
        )
        assert begun["actor"].startswith("cli")
        assert (ended["verb"], ended["details"]["ended"]) == ("replay_ended", "done")
        assert ended["details"]["replayed"] == count
        assert await service.rows("SELECT DISTINCT run_id::text FROM statesvc.dead_letter") == [
            (begun["details"]["run"],)
        ]
        sys.stdout.write(f"\n{count} dead letters of one cause replayed in {seconds:.1f} s\n")


async def test_a_replay_that_is_killed_at_any_time_loses_and_doubles_nothing(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with dead_letters(service_maker, tmp_path, 500) as service:
        process = await service.begin(*FAILED)
        began = "SELECT EXISTS (SELECT FROM statesvc.dead_letter WHERE resolved_at IS NOT NULL)"
        await until(lambda: service.value(began), pause_seconds=0.001)
        process.kill()
        await process.wait()
        ended, output, errors = await service.run(*FAILED, "--json", settings={"MENDED": "1"})
        assert (ended, json.loads(output)["ended"]) == (0, "done"), errors
        await service.assert_applied_once(500)
        unnamed = "SELECT count(*) FROM statesvc.dead_letter WHERE run_id IS NULL"
        assert await service.value(unnamed) == 0, "each names the run that replayed it"
