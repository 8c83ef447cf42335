"""A subscriber with Django and Celery, by our Celery target and by its own view: notifier, broker,
worker and view killed again and again.

No task is lost. One runs again only where a process died between its two runs, under the same id.
"""

import asyncio
import os
import signal
import sqlite3
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from statesvc.delivery.outgoing import Login
from statesvc.subscriptions.subscription_secrets import Secret
from tests.acceptance.processes import Service, until_false
from tests.soak.fanout import changes
from tests.soak.server import SoakServer
from tests.world.brokers import RabbitMq, Redis, Server, running_rabbitmq, running_redis
from tests.world.ports import free_port

pytestmark = pytest.mark.soak

PROGRAMS: Final = Path("/opt/django/bin")
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "django"
TASK: Final = "tracking.tasks.shipment_changed"
SHIPMENTS: Final = int(os.environ.get("STATESVC_SOAK_CELERY_SHIPMENTS", "300"))
ROUNDS: Final = 2
VICTIMS: Final = ("worker", "notifier", "view", "broker")
TOLD_AT_ONCE: Final = 50
OUTAGE_SECONDS: Final = 2
VISIBILITY_SECONDS: Final = 10
DRAINED_SECONDS_MAX: Final = 600

LEDGER: Final = '''
"""Writes down when each task begins."""
import os, time
from celery.signals import task_prerun

@task_prerun.connect
def note(task_id, **_):
    with open(os.environ["RUN_LEDGER"], "a") as ledger:
        ledger.write(f"{time.time()} {task_id}\\n")
'''


class Shop:
    """The example, in processes of its own: `view` behind gunicorn and `worker`, each killed
    with all of its children.
    """

    def __init__(self, folder: Path, broker: str, *, secret: str) -> None:
        self._folder = folder
        self._processes: dict[str, Process] = {}
        self.port = free_port()
        (folder / "run_ledger.py").write_text(LEDGER)
        self.database, self.ledger = folder / "shop.sqlite3", folder / "ledger"
        self._environment = os.environ | {
            "BROKER_URL": broker,
            "DATABASE_FILE": str(self.database),
            "NOTIFICATION_SECRETS": secret,
            "RUN_LEDGER": str(self.ledger),
            "PYTHONPATH": str(folder),
            "VISIBILITY_SECONDS": str(VISIBILITY_SECONDS),
        }
        self._commands = {
            "view": (
                "gunicorn",
                "--bind",
                f"127.0.0.1:{self.port}",
                "--workers",
                "2",
                "--log-level",
                "error",
                "shop.wsgi",
            ),
            "worker": (
                "celery",
                "-A",
                "shop",
                "worker",
                "-I",
                "run_ledger",
                "--concurrency",
                "2",
                "--loglevel",
                "ERROR",
            ),
        }

    async def start(self, name: str) -> None:
        program, *arguments = self._commands[name]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                PROGRAMS / program,
                *arguments,
                cwd=EXAMPLE,
                env=self._environment,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    async def revive(self) -> bool:
        """Start what ended by itself, as systemd does: a worker of Celery's that loses
        its Redis may end (5.7).
        """
        ended = [
            name for name, process in self._processes.items() if process.returncode is not None
        ]
        for name in ended:
            await self.start(name)
        return bool(ended)

    async def migrate(self) -> None:
        command = (PROGRAMS / "python", "manage.py", "migrate", "-v", "0")
        made = await asyncio.create_subprocess_exec(*command, cwd=EXAMPLE, env=self._environment)
        assert await made.wait() == 0

    async def stop(self) -> None:
        for name in list(self._processes):
            await self.kill(name)

    def told(self) -> list[str]:
        """Return the webhook-ids of which a customer was told."""
        connection = sqlite3.connect(self.database, timeout=20)
        try:
            return [row[0] for row in connection.execute("SELECT webhook_id FROM tracking_told")]
        finally:
            connection.close()

    def runs(self) -> dict[str, list[float]]:
        """When each task began."""
        found: dict[str, list[float]] = defaultdict(list)
        for line in self.ledger.read_text().splitlines():
            at, task_id = line.split()
            found[task_id].append(float(at))
        return found


@asynccontextmanager
async def broker(name: str, folder: Path) -> AsyncIterator[tuple[Server, str, str, Login | None]]:
    """Start the server; return it, its URL for Celery, and the URL and login of a subscription."""
    if name == RabbitMq.name:
        async with running_rabbitmq(folder) as rabbitmq:
            target = f"celery+amqp://127.0.0.1:{rabbitmq.port}/%2F/celery?task={TASK}"
            yield rabbitmq, f"{rabbitmq.address}/", target, Login("guest", "guest")
    else:
        async with running_redis(folder) as redis:
            yield (
                redis,
                redis.address,
                f"celery+redis://127.0.0.1:{redis.port}/0/celery?task={TASK}",
                None,
            )


@pytest.mark.parametrize("name", [RabbitMq.name, Redis.name])
async def test_no_task_is_lost_and_none_runs_again_unless_a_process_died_in_between(
    name: str, own_server: SoakServer, tmp_path: Path
) -> None:
    settings = {"STATESVC_NOTIFIER_LEASE_SECONDS": "16"}
    dsns, began, killed = own_server.dsns, time.monotonic(), list[float]()
    async with AsyncExitStack() as stack:
        server, address, target, login = await stack.enter_async_context(
            broker(name, tmp_path / name)
        )
        told = await stack.enter_async_context(changes(dsns.service_dsn))
        service = await stack.enter_async_context(
            Service(
                service_dsn=dsns.service_dsn,
                owner_dsn=dsns.owner_dsn,
                folder=tmp_path,
                settings=settings,
            )
        )
        secret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdGluZyBraXQhISE="
        shop = Shop(tmp_path, address, secret=secret)
        stack.push_async_callback(shop.stop)
        await shop.migrate()
        await shop.start("worker")
        await shop.start("view")
        await told.subscribe(target, login=login, coalesce=False)
        await told.subscribe(
            f"http://127.0.0.1:{shop.port}/notifications/",
            chosen=(uuid4(), Secret.chosen(secret)),
            coalesce=False,
        )
        notifier = (await service.start("notifier"))[0]
        shipments = await told.make_shipments(SHIPMENTS)

        async def kill(victim: str) -> Callable[[], Awaitable[None]]:
            """Return what starts it again."""
            nonlocal notifier
            killed.append(time.time())
            if victim == "broker":
                await server.kill()
                return server.start
            if victim == "notifier":
                notifier.kill()
                await notifier.exit_code()

                async def start_notifier() -> None:
                    nonlocal notifier
                    notifier = (await service.start("notifier"))[0]

                return start_notifier
            await shop.kill(victim)
            return lambda: shop.start(victim)

        expected = 0
        for sequence in range(1, ROUNDS * len(VICTIMS) + 1):
            for place in range(0, len(shipments), TOLD_AT_ONCE):
                expected += await told.tell(
                    [(one, sequence) for one in shipments[place : place + TOLD_AT_ONCE]]
                )
            # while half of it is under way
            await _until_told(shop, expected - SHIPMENTS, killed)
            start = await kill(VICTIMS[sequence % len(VICTIMS)])
            await asyncio.sleep(OUTAGE_SECONDS)
            await start()
            await _until_told(shop, expected, killed)
        ids = {row[0] for row in await told.rows("SELECT webhook_id FROM statesvc.notification")}
        buried = (await told.rows("SELECT count(*) FROM statesvc.dead_letter"))[0][0]
    repeats = {task_id: at for task_id, at in shop.runs().items() if len(at) > 1}
    sys.stdout.write(
        f"\n{name}: {len(ids)} notifications, {len(killed)} kills ({ROUNDS} each of"
        f" {', '.join(VICTIMS)}): each told once, {len(repeats)} tasks ran again, in"
        f" {time.monotonic() - began:.0f} s\n"
    )
    assert buried == 0
    assert len(ids) == expected
    assert sorted(shop.told()) == sorted(ids), "each told, once, and nothing else"
    unexplained = [
        (task_id, earlier, later)
        for task_id, at in repeats.items()
        for earlier, later in pairwise(at)
        if not any(earlier <= death <= later for death in killed)
    ]
    assert unexplained == []


async def _until_told(shop: Shop, count: int, killed: list[float]) -> None:
    async def are_fewer() -> bool:
        if await shop.revive():
            killed.append(time.time())
        return len(await asyncio.to_thread(shop.told)) < count

    async with asyncio.timeout(DRAINED_SECONDS_MAX):
        await until_false(are_fewer, pause_seconds=0.1)
