"""Scene of an incident: `statesvc up` as anyone would start it, carriers that push, a subscriber,
Prometheus that scrapes.
"""

import asyncio
import json
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from statesvc.addons.demo.demo_counts import DemoCounts
from statesvc.addons.demo.run import CarrierClient
from statesvc.addons.demo.traffic import Behaviour, Push, pushes
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import attach
from statesvc.database.migrator import migrate
from statesvc.roles.supervisor.child_plan import ROLES
from tests.acceptance.processes import BOOTSTRAP_KEY, MASTER_KEY
from tests.acceptance.stories import ups_alert
from tests.soak.incidents.on_call import OnCall
from tests.soak.incidents.shortened import shortened
from tests.soak.proxy import Proxy, proxy_to
from tests.world.cluster import Cluster
from tests.world.ports import free_port, port_for_up
from tests.world.prometheus import Prometheus, scraping

START_SECONDS: Final = 180.0
RATE: Final = 25.0
"""Pushes a second of all sample carriers together."""
_JSON: Final = {"Content-Type": "application/json"}


class Receiver:
    """A subscriber that takes all that comes, while it is there."""

    def __init__(self) -> None:
        self._port = free_port()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_post("/", self._take)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=204)


@dataclass(slots=True, kw_only=True)
class Scene:
    """Parts of the scene that an incident may lay hands on."""

    folder: Path
    cluster: Cluster | None
    dsns: Dsns
    settings: Mapping[str, str]
    session: aiohttp.ClientSession
    receiver: Receiver
    stack: AsyncExitStack
    port: int = field(default_factory=port_for_up)
    metrics_port: int = field(default_factory=free_port)
    silent: set[str] = field(default_factory=set)
    """Carriers that push nothing for now."""
    subscription_id: str = ""
    troubles: list[asyncio.Task[Any]] = field(default_factory=list)
    """Tasks that go on doing harm."""
    proxy: Proxy | None = None
    """Through which the service listens, if it does."""
    _up: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ports(self) -> dict[str, int]:
        return {role: self.port + place for place, role in enumerate(ROLES)}

    async def up(self) -> None:
        """Start the service, and wait until every role is ready."""
        await self.begin_up()
        await self._until_ready()

    async def begin_up(self) -> None:
        with self.folder.joinpath("up.log").open("ab") as log:
            self._up = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "statesvc", "up", "--port", str(self.port)),
                env={**self.settings, "STATESVC_METRICS_PORT": str(self.metrics_port)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def down(self) -> None:
        """End the service in order."""
        if self._up is not None and self._up.returncode is None:
            self._up.send_signal(signal.SIGTERM)
            await self._up.wait()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Make a call of the API that goes well."""
        content = None if body is None else json.dumps(body)
        headers = _JSON | {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
        async with self.session.request(
            method, f"{self.url}{path}", data=content, headers=headers
        ) as answer:
            assert answer.ok, await answer.text()
            return await answer.json()

    async def push(self, body: bytes) -> int:
        """Push one webhook of UPS; return the status of the answer."""
        try:
            async with self.session.post(
                f"{self.url}/v1/webhooks/ups", data=body, headers=_JSON
            ) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    async def push_steadily(self, bodies: Iterator[bytes], *, rate: float) -> None:
        """Push webhooks of UPS, so many a second, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for body in bodies:
                group.create_task(self.push(body))
                await asyncio.sleep(1 / rate)

    def background(self, work: Any, name: str) -> asyncio.Task[Any]:
        """Run in the background until it is cancelled, at the latest with the scene."""
        task: asyncio.Task[Any] = asyncio.create_task(work, name=name)
        self.stack.push_async_callback(cancelled, task)
        return task

    def trouble(self, work: Any, name: str) -> None:
        """Do harm in the background, until it is cancelled."""
        self.troubles.append(self.background(work, name))

    async def command(self, *arguments: str) -> None:
        """Run a command line of ours that goes well."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "statesvc", *arguments, env=dict(self.settings)
        )
        assert await process.wait() == 0, arguments

    async def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement as superuser."""
        assert self.dsns.superuser is not None
        async with await AsyncConnection.connect(
            self.dsns.superuser, autocommit=True
        ) as connection:
            cursor = await connection.execute(statement.encode())
            return await cursor.fetchall() if cursor.description else []

    async def pid_of(self, role: str) -> int:
        """Return the id of the process that has this role."""
        rows = await self.execute(
            f"SELECT worker_id FROM statesvc.worker WHERE role = '{role}' ORDER BY last_seen_at"
            " DESC LIMIT 1"
        )
        found = re.search(rf"-{role}-(\d+)", str(rows[0][0]))
        assert found is not None, rows
        return int(found[1])

    def traffic(self) -> Iterator[Push]:
        """Yield pushes of the sample carriers, all of it readable, without those that are
        silent.
        """
        trouble = {Behaviour.UNREADABLE, Behaviour.UNKNOWN_CODE}
        for push in pushes(random.Random(7), lambda: datetime.now(UTC)):
            if push.behaviour not in trouble and push.carrier_id not in self.silent:
                yield push

    async def _until_ready(self) -> None:
        async with asyncio.timeout(START_SECONDS):
            for port in self.ports.values():
                while not await self._is_ready(port):
                    assert self._up is not None
                    assert self._up.returncode is None, self.folder.joinpath("up.log").read_text()[
                        -3000:
                    ]
                    await asyncio.sleep(0.2)

    async def _is_ready(self, port: int) -> bool:
        try:
            async with self.session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


def alerts_of_ups(prefix: str) -> Iterator[bytes]:
    """Yield endless single scans, each of another parcel."""
    number = 0
    while True:
        number += 1
        yield ups_alert(f"1Z{prefix}{number:010d}", "I/OT", day=3, minute=number % 900).body


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def scene(
    folder: Path, *, factor: float, data_dir: Path | None = None, has_listen_proxy: bool = False
) -> AsyncIterator[tuple[Scene, Prometheus, OnCall]]:
    """Run the service, well and under load.

    `data_dir`: with its embedded server there, instead of a server of its own elsewhere.
    `has_listen_proxy`: listens through a proxy.
    """
    async with AsyncExitStack() as stack:
        cluster = None
        if data_dir is None:
            cluster = await asyncio.to_thread(Cluster, folder)
            stack.push_async_callback(asyncio.to_thread, cluster.stop)
            await migrate(
                cluster.dsns.owner, cluster.dsns.listen, superuser_dsn=cluster.dsns.superuser
            )
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20))
        )
        receiver = Receiver()
        await receiver.start()
        stack.push_async_callback(receiver.stop)
        environment = _environment(cluster, data_dir, folder)
        proxy = None
        if has_listen_proxy:
            assert cluster is not None
            proxy = await stack.enter_async_context(proxy_to(cluster.port))
            environment["STATESVC_LISTEN_URL"] = make_conninfo(
                cluster.dsns.listen, host="127.0.0.1", port=proxy.port
            )
        found = Scene(
            folder=folder,
            cluster=cluster,
            dsns=cluster.dsns if cluster is not None else Dsns(service="", owner="", listen=""),
            settings=environment,
            session=session,
            receiver=receiver,
            stack=stack,
            proxy=proxy,
        )
        stack.push_async_callback(found.down)
        await found.up()
        if data_dir is not None:
            attached = attach(data_dir)
            assert attached is not None
            found.dsns = attached
        found.subscription_id = (
            await found.call("POST", "/v1/subscriptions", {"url": receiver.url})
        )["id"]
        carriers = CarrierClient(session=session, url=found.url, rate=RATE, counts=DemoCounts())
        found.background(carriers.run(found.traffic()), "carriers")
        watcher = await stack.enter_async_context(
            scraping(folder, found.metrics_port, shortened(factor))
        )
        on_call = OnCall(environment=environment, urls=_urls(found.dsns), folder=folder)
        stack.push_async_callback(on_call.close)
        yield found, watcher, on_call


def _environment(cluster: Cluster | None, data_dir: Path | None, folder: Path) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STATESVC_", "DATABASE_URL"))
    }
    programs = Path(sys.executable).parent
    common = {
        **inherited,
        "PATH": f"{programs}{os.pathsep}{inherited['PATH']}",
        "STATESVC_BOOTSTRAP_KEY": BOOTSTRAP_KEY,
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "1",
        "STATESVC_SUBSCRIBER_ALLOW": "127.0.0.0/8",
        "STATESVC_LOG_FORMAT": "json",
    }
    if cluster is None:
        return common | {"STATESVC_DATA_DIR": str(data_dir)}
    return common | {
        "DATABASE_URL": cluster.dsns.service,
        "STATESVC_OWNER_URL": cluster.dsns.owner,
        "STATESVC_MASTER_KEY": MASTER_KEY,
        "STATESVC_DATA_DIR": str(folder / "own"),
        "STATESVC_SEALER_CHECKPOINT_FILE": str(folder / "checkpoint"),
    }


def _urls(dsns: Dsns) -> dict[str, str]:
    return {
        "DATABASE_URL": dsns.service,
        "STATESVC_OWNER_URL": dsns.owner,
        "SUPERUSER_URL": dsns.superuser or "",
    }
