"""`statesvc up` on an empty folder: real processes, its own PostgreSQL, one webhook in, its
history out, an orderly end.
"""

import asyncio
import json
import os
import pty
import re
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from statesvc.addons.demo.dialects import ups
from statesvc.addons.demo.parcels import ParcelStep, invent
from statesvc.roles.supervisor.child_plan import CHILDREN, ROLES
from tests.acceptance.slow_request import slow_request
from tests.world.ports import free_port, port_for_up
from tests.world.waiting import has_ended, until

SECRET = "up-test-credential"
ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'statesvc', *sys.argv[1:]])"
)
START_SECONDS = 60
STOP_SECONDS = 40


class Running:
    """One `statesvc up` and what it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = port_for_up()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STATESVC_", "DATABASE_URL"))
        }
        self.metrics_port = free_port()
        self.environment = {
            **kept,
            "STATESVC_METRICS_PORT": str(self.metrics_port),
            "STATESVC_DATA_DIR": str(folder / "data"),
            "STATESVC_WEBHOOK_SECRET_UPS": SECRET,
        }

    async def up(self, *arguments: str, module: str = "statesvc") -> asyncio.subprocess.Process:
        with (
            self.folder.joinpath("out").open("ab") as out,
            self.folder.joinpath("err").open("ab") as err,
        ):
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, "up", "--port", str(self.port), *arguments),
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    async def up_on_a_terminal(self) -> tuple[asyncio.subprocess.Process, int]:
        """Return the process, which leads a session, and the terminal's other end: closing it hangs
        up.
        """
        ours, theirs = pty.openpty()
        with self.folder.joinpath("err").open("ab") as err:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ON_A_TERMINAL, "up", "--port", str(self.port)),
                env=self.environment,
                stdin=theirs,
                stdout=theirs,
                stderr=err,
            )
        os.close(theirs)
        return process, ours

    async def command(self, *arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", *arguments),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = await process.communicate()
        return process.returncode or 0, (printed or errors).decode()

    async def ready(self, process: asyncio.subprocess.Process, port: int) -> None:
        async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
            while True:
                assert process.returncode is None, self.log()
                try:
                    async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)

    def listening(self) -> set[str]:
        """Return the roles that were up at some time.

        Readiness is that of ingress and api alone.
        """
        return set(self.listened())

    def listened(self) -> list[str]:
        """Return the role at each start to listen."""
        return [line["role"] for line in self.lines("listening")]

    def out(self) -> str:
        return self.folder.joinpath("out").read_text()

    def log(self) -> str:
        return self.folder.joinpath("err").read_text()[-6000:]

    def lines(self, event: str) -> list[dict[str, Any]]:
        told = [
            json.loads(line)
            for line in self.folder.joinpath("err").read_text().splitlines()
            if line.startswith("{")
        ]
        return [line for line in told if line["event"] == event]


@pytest.fixture
def running(own_processes: None, tmp_path: Path) -> Running:  # noqa: ARG001 - a mark
    return Running(tmp_path)


async def end(process: asyncio.subprocess.Process) -> int:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    return await asyncio.wait_for(process.wait(), STOP_SECONDS)


async def test_a_webhook_goes_in_its_history_comes_out_and_sigterm_ends_ingest_first(
    running: Running,
) -> None:
    running.environment |= {"STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedex"}
    parcel = next(
        parcel
        for parcel in (invent(Random(seed), "ups", datetime.now(UTC)) for seed in range(99))
        if parcel.scans[-1].step is ParcelStep.DELIVERED
    )
    process = await running.up()
    try:
        await running.ready(process, running.port)
        code, printed = await running.command(
            "keys", "create", "--name", "test", "--scopes", "read,audit"
        )
        assert code == 0, printed
        headers = {"Authorization": f"Bearer {printed.strip()}"}
        async with aiohttp.ClientSession(running.url, headers=headers) as session:
            await refuses_an_unsigned_webhook(session)
            for count in range(1, len(parcel.scans) + 1):
                body = ups(parcel, parcel.scans[:count])
                async with session.post(
                    "/v1/webhooks/ups", data=body, headers={"credential": SECRET}
                ) as answer:
                    assert answer.status == 200
                    assert (await answer.json())["duplicate"] is False
            shipment = await until_version(session, parcel.number, len(parcel.scans))
            assert shipment["status"] == "delivered"
            async with session.get(f"/v1/shipments/ups/{parcel.number}/history") as answer:
                history = (await answer.json())["items"]
        assert [datetime.fromisoformat(event["occurred_at"]) for event in history] == [
            scan.at for scan in parcel.scans
        ]
        assert parcel.number not in running.log()
        refused, told = await running.command("up", "--port", str(port_for_up()))
        assert refused == 1
        assert str(process.pid) in told
        await until(lambda: running.listening() == set(ROLES))
        async with slow_request(running.port, "fedex", b"{}  ") as slow:
            process.send_signal(signal.SIGTERM)
            await until(lambda: len(running.lines("stopping")) > len(CHILDREN))
            assert process.returncode is None
            assert await slow.finish() == 200, "every request that was taken is answered"
        code = await asyncio.wait_for(process.wait(), STOP_SECONDS)
    finally:
        await end(process)
    assert code == 0, running.log()
    assert [line["process"] for line in running.lines("stopping")][:2] == ["up", "ingress"]
    assert running.lines("child_died") == []
    assert running.lines("child_killed") == []
    assert "statesvc is running" in running.out()
    await is_gone(running)


async def test_a_disk_at_its_bound_is_said_by_readyz_and_status(running: Running) -> None:
    running.environment |= {
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedex",
        "STATESVC_INGRESS_DISK_FREE_BYTES_MIN": str(10**18),
    }
    process = await running.up()
    try:
        await until(lambda: running.listening() == set(ROLES))
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{running.url}/v1/webhooks/fedex", data=b"{}") as refused:
                assert (refused.status, (await refused.json(content_type=None))["code"]) == (
                    503,
                    "storage_low",
                )
            async with session.get(f"{running.url}/readyz") as answer:
                assert answer.status == 503
                assert "storage_low" in await answer.text()
        async with asyncio.timeout(START_SECONDS):
            while True:
                exit_code, printed = await running.command("status")
                if (
                    "100 % of the pushes of the last minute were not acknowledged: 1 storage_low"
                    in printed
                ):
                    break
                await asyncio.sleep(2)
        assert exit_code == 1
        assert re.search(
            r"NOW +pushes +the database's disk has .* every push is refused", printed
        ), printed
        await until(
            lambda: any("storage_low" in line["why"] for line in running.lines("service_not_ready"))
        )
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{running.metrics_port}/metrics") as answer,
        ):
            assert 'statesvc_ingest_storage_low{role="ingress"} 1.0' in await answer.text()
    finally:
        code = await end(process)
    assert code == 0, running.log()


async def test_a_terminal_that_closes_ends_everything_as_sigterm_does(running: Running) -> None:
    running.environment |= {"STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedex"}
    process, terminal = await running.up_on_a_terminal()
    try:
        await running.ready(process, running.port)
        await until(lambda: running.listening() == set(ROLES))
        async with slow_request(running.port, "fedex", b"{}  ") as slow:
            os.close(terminal)
            # the kernel hangs up on the leader of the session, its shell on the group
            await until(lambda: len(running.lines("stopping")) > 0)
            os.killpg(process.pid, signal.SIGHUP)
            await until(lambda: len(running.lines("stopping")) > len(CHILDREN))
            assert await slow.finish() == 200
        assert await asyncio.wait_for(process.wait(), STOP_SECONDS) == 0, running.log()
    finally:
        await end(process)
    assert [line["reason"] for line in running.lines("stopping") if line["process"] == "up"] == [
        "sighup"
    ]
    assert (
        running.lines("aborting") + running.lines("child_died") + running.lines("child_killed")
        == []
    )
    await is_gone(running)


async def test_a_second_sigterm_aborts_everything(running: Running) -> None:
    running.environment |= {
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedex",
        "STATESVC_GRACE_SECONDS": "60",
        "STATESVC_DRAIN_SECONDS": "60",
    }
    process = await running.up()
    try:
        await running.ready(process, running.port)
        roles = [line["pid"] for line in running.lines("child_started")]
        async with slow_request(running.port, "fedex", b"{}  "):
            process.send_signal(signal.SIGTERM)
            await until(
                lambda: any(line["process"] == "ingress" for line in running.lines("stopping"))
            )
            assert process.returncode is None
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), STOP_SECONDS) == 1
        assert all(has_ended(pid) for pid in roles)
        assert running.lines("child_killed") == []
    finally:
        await end(process)
    await is_gone(running)


async def test_the_demo_pushes_and_its_subscriber_hears(running: Running) -> None:
    process = await running.up("--demo", "--demo-rate", "40")
    try:
        await until(
            lambda: (
                "notifications, signature right" in running.out()
                and "-> in_transit" in running.out()
            )
        )
    finally:
        assert await end(process) == 0, running.log()
    printed = running.out()
    assert "refused with" not in printed
    assert "no subscriber" not in printed
    assert "wrong signature" not in printed


async def refuses_an_unsigned_webhook(session: aiohttp.ClientSession) -> None:
    async with session.post(
        "/v1/webhooks/ups", data=b"{}", headers={"credential": "wrong", "Authorization": "none"}
    ) as answer:
        assert answer.status == 401


async def until_version(
    session: aiohttp.ClientSession, number: str, version: int
) -> dict[str, Any]:
    """Wait for a version; messages of one shipment may be applied in any order, so the
    delivery need not be the last.

    The worker of `up` stands back behind whatever else runs (`nice`), and a message behind the
    low-water mark waits for a sweep.
    """
    async with asyncio.timeout(90):
        while True:
            async with session.get(f"/v1/shipments/ups/{number}") as answer:
                shipment: dict[str, Any] = await answer.json()
            if shipment.get("version") == version:
                return shipment
            await asyncio.sleep(0.05)


async def is_gone(running: Running) -> None:
    code, told = await running.command("doctor")
    assert code == 0, told
    assert "not running" in told
