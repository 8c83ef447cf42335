"""Breakages on purpose are found from `statesvc status` alone, and from the console's overview
alone: eleven of them, and the seconds.

Each is made on a service of its own; nothing but these two is looked at, and what `up` prints
where it does not start.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import aiohttp
import psycopg
import pytest
from psycopg import sql

from statesvc.roles.supervisor.child_plan import ROLES
from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.acceptance.test_up import Running, end
from tests.soak.overview_reader import OverviewReader
from tests.world.cluster import Cluster
from tests.world.ports import free_port
from tests.world.waiting import until

pytestmark = pytest.mark.soak

FOUND_SECONDS: Final = 150.0
OVERVIEWS: Final[WeakKeyDictionary[Service, OverviewReader]] = WeakKeyDictionary()
"""Of each service."""
UPS: Final = (
    Path(__file__).parents[1] / "events/carriers/fixtures/ups/track_alert_delivered_signed.json"
)
UNKNOWN: Final = {
    "mailPieces": {
        "mailPieceId": "AB000000001GB",
        "events": [
            {
                "eventCode": "EVZZ9",
                "eventName": "Handed over",
                "eventDateTime": "2026-03-02T10:04:00+00:00",
                "locationName": "Leeds DO",
            }
        ],
    }
}


@pytest.fixture
def cluster(own_processes: None, tmp_path: Path) -> Iterator[Cluster]:  # noqa: ARG001 - a mark
    made = Cluster(tmp_path / "server")
    yield made
    made.stop()


@asynccontextmanager
async def service_on(cluster: Cluster, folder: Path, *roles: str) -> AsyncIterator[Service]:
    settings = {"STATESVC_SEALER_CHECKPOINT_FILE": str(folder / "checkpoint")}
    service = Service(
        service_dsn=cluster.dsns.service,
        owner_dsn=cluster.dsns.owner,
        folder=folder,
        settings=settings,
        forks=True,
    )
    async with service:
        await service.command("migrate")
        await service.start(*roles)
        async with OverviewReader(service.api.url, BOOTSTRAP_KEY) as overview:
            OVERVIEWS[service] = overview
            yield service


Findings = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]


def status_of(service: Service) -> Findings:
    async def findings() -> Sequence[Mapping[str, Any]]:
        _, printed, _ = await service.run("status", "--json")
        troubles: Sequence[Mapping[str, Any]] = json.loads(printed)["troubles"] if printed else []
        return troubles

    return findings


async def found(
    service: Service, about: Callable[[Mapping[str, Any]], bool], *, what: str
) -> Mapping[str, Any]:
    """Return the finding of `status`, once it is there and the overview names it, too; print
    after how many seconds.
    """
    faces: Mapping[str, Findings] = {
        "status": status_of(service),
        "overview": OVERVIEWS[service].findings,
    }
    by_status, _ = await asyncio.gather(
        *(_found_by(read, about, what=f"{what}, by {name}") for name, read in faces.items())
    )
    return by_status


async def _found_by(
    read: Findings, about: Callable[[Mapping[str, Any]], bool], *, what: str
) -> Mapping[str, Any]:
    began = time.monotonic()
    while True:
        findings = await read()
        finding = next(filter(about, findings), None)
        seconds = time.monotonic() - began
        if finding is not None:
            sys.stdout.write(
                f"\n| {what} | {finding['urgency']}: {finding['about']}: {finding['text']} |"
                f" {seconds:.0f} s |\n"
            )
            return finding
        assert seconds < FOUND_SECONDS, (
            f"{what}: {[(one['about'], one['text']) for one in findings]}"
        )
        await asyncio.sleep(0.5)


async def printed_by(running: Running, words: str, *, what: str) -> str:
    """Return what `status` prints, once it says these words; print after how many seconds."""
    began = time.monotonic()
    while True:
        _, printed = await running.command("status")
        seconds = time.monotonic() - began
        if words in printed:
            sys.stdout.write(f"\n| {what} | {seconds:.0f} s |\n{printed}\n")
            return printed
        assert seconds < FOUND_SECONDS, f"{what}: {printed}"
        await asyncio.sleep(0.5)


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def pids_of(service: Service, *roles: str) -> list[int]:
    return [
        one.process.pid
        for one in service.roles
        if one.role in roles and one.process.pid is not None
    ]


@asynccontextmanager
async def pushing(service: Service) -> AsyncIterator[None]:
    """Push once for UPS each half second."""

    async def push() -> None:
        ingress = next(one for one in service.roles if one.role == "ingress")
        number = 0
        while True:
            number += 1
            body = UPS.read_bytes().replace(
                b"1ZTEST000300000011", f"1ZTEST0003{number:08}".encode()
            )
            try:
                async with service.session.post(
                    f"{ingress.url}/v1/webhooks/ups",
                    data=body,
                    headers={"credential": "ups-test-credential"},
                ) as answer:
                    await answer.read()
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.5)

    task = asyncio.create_task(push())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_worker_and_sealer_frozen(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service, pushing(service):
        with frozen(pids_of(service, "worker", "sealer")):
            await found(
                service,
                lambda one: "no worker was heard of" in one["text"],
                what="worker and sealer frozen",
            )
            late = await found(
                service,
                lambda one: one["about"] == "ups",
                what="what follows from it: messages wait",
            )
            assert late["cause"] == "docs/runbook/RoleDown.md"


async def test_receiver_down(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service, pushing(service):
        status, _ = await service.post(
            "/v1/subscriptions",
            json.dumps({"url": f"http://127.0.0.1:{free_port()}/"}),
            **{"Content-Type": "application/json"},
        )
        assert status == 201
        down = await found(
            service, lambda one: one["about"].startswith("subscription"), what="a receiver is down"
        )
        assert "the last: connection refused" in down["text"]


async def test_carrier_held(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service:
        await service.command("rollout", "hold", "ups", "--why", "sends nonsense")
        held = await found(service, lambda one: one["about"] == "ups", what="a carrier is held")
        assert ", by cli:" in held["text"]
        assert "sends nonsense" in held["text"]


async def test_unknown_code(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service:
        status, _ = await service.webhook("royalmail", json.dumps(UNKNOWN).encode())
        assert status == 200
        await found(
            service,
            lambda one: one["page"] == "docs/runbook/UnknownCodes.md",
            what="a code that nobody knows",
        )
        assert "statesvc carriers map royalmail --code EVZZ9 --status" in await service.command(
            "carriers", "unmapped"
        )


# a mark
async def test_disk_below_its_bound(own_processes: None, tmp_path: Path) -> None:  # noqa: ARG001
    running = Running(tmp_path)
    running.environment |= {
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedex",
        "STATESVC_INGRESS_DISK_FREE_BYTES_MIN": str(10**18),
        "STATESVC_BOOTSTRAP_KEY": BOOTSTRAP_KEY,
    }
    process = await running.up()
    try:
        await until(lambda: running.listening() == set(ROLES))
        async with OverviewReader(running.url, BOOTSTRAP_KEY) as overview:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{running.url}/v1/webhooks/fedex", data=b"{}") as refused,
            ):
                assert refused.status == 503
            printed, _ = await asyncio.gather(
                printed_by(running, "100 % of the pushes", what="disk below its bound"),
                _found_by(
                    overview.findings,
                    lambda one: "100 % of the pushes" in one["text"],
                    what="disk below its bound, by overview",
                ),
            )
            assert "so: pushes: 100 %" in printed
    finally:
        await end(process)


async def test_database_restored_to_before_the_published_head(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service:
        async with pushing(service):
            await _sealed(service)
        await asyncio.to_thread(cluster.base_backup)
        head = (tmp_path / "checkpoint").read_text()
        async with pushing(service), asyncio.timeout(FOUND_SECONDS):
            # another process writes it
            while (tmp_path / "checkpoint").read_text() == head:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await _sealed(service)
        for role in service.roles:
            role.kill()
            await role.process.wait()
        await asyncio.to_thread(cluster.restore)
        for name in ROLES:
            await service.spawn(name)
        async with OverviewReader(service.api.url, BOOTSTRAP_KEY) as overview:
            OVERVIEWS[service] = overview
            await found(
                service,
                lambda one: one["page"] == "docs/runbook/SealerRefuses.md",
                what="database restored to before the head",
            )


async def _sealed(service: Service) -> None:
    async with asyncio.timeout(FOUND_SECONDS):
        while await service.value(  # noqa: ASYNC110
            "SELECT NOT EXISTS (SELECT FROM statesvc.event) OR EXISTS (SELECT FROM"
            " statesvc.unsealed)"
        ):
            await asyncio.sleep(0.1)


async def test_ingress_frozen(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service:
        with frozen(pids_of(service, "ingress")):
            await found(
                service, lambda one: one["text"].startswith("ingress on "), what="ingress frozen"
            )


async def test_worker_killed(own_processes: None, tmp_path: Path) -> None:  # noqa: ARG001 - a mark
    running = Running(tmp_path)
    running.environment["STATESVC_BOOTSTRAP_KEY"] = BOOTSTRAP_KEY
    process = await running.up()
    try:
        await until(lambda: running.listening() == set(ROLES))
        pid = next(
            line["pid"] for line in running.lines("child_started") if line["role"] == "worker"
        )
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        await until(lambda: running.listened().count("worker") == 2)
        sys.stdout.write(
            f"\n| worker killed | `up` started it again | {time.monotonic() - began:.1f} s |\n"
        )
        async with OverviewReader(running.url, BOOTSTRAP_KEY) as overview:
            await asyncio.gather(
                printed_by(running, "and was started again", what="worker killed"),
                _found_by(
                    overview.findings,
                    lambda one: "and was started again" in one["text"],
                    what="worker killed, by overview",
                ),
            )
    finally:
        await end(process)


# a mark
async def test_bootstrap_key_too_short(own_processes: None, tmp_path: Path) -> None:  # noqa: ARG001
    running = Running(tmp_path)
    running.environment["STATESVC_BOOTSTRAP_KEY"] = "x" * 23
    began = time.monotonic()
    process = await running.up()
    assert await asyncio.wait_for(process.wait(), FOUND_SECONDS) == 2
    said = running.folder.joinpath("err").read_text()
    sys.stdout.write(
        f"\n| first key too short | {said.strip()} | {time.monotonic() - began:.1f} s |\n"
    )
    assert said.count("\n") == 1
    assert not running.folder.joinpath("data").exists()


async def test_database_read_only(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service:
        async with await psycopg.AsyncConnection.connect(
            cluster.dsns.superuser or "", autocommit=True
        ) as superuser:
            name = sql.Identifier(superuser.info.dbname)
            await superuser.execute(
                sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
            )
            await superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                " 'statesvc_service'"
            )
        only_reads = await found(
            service,
            lambda one: "the database takes no writes" in one["text"],
            what="database read-only",
        )
        assert (
            "`ALTER DATABASE ... RESET default_transaction_read_only` ends it" in only_reads["text"]
        )


async def test_sessions_of_the_database_frozen(cluster: Cluster, tmp_path: Path) -> None:
    async with service_on(cluster, tmp_path, *ROLES) as service, pushing(service):
        async with await psycopg.AsyncConnection.connect(
            cluster.dsns.superuser or "", autocommit=True
        ) as superuser:
            asked = await superuser.execute(
                "SELECT pid FROM pg_stat_activity WHERE usename = 'statesvc_service'"
            )
            pids = [pid for (pid,) in await asked.fetchall()]
        with frozen(pids):
            await found(
                service, lambda one: one["urgency"] == "now", what="sessions of the database frozen"
            )
