"""Real role processes on a test database: started, watched, killed."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import aiohttp
import psycopg

from tests.world.forked import ForkedProcess, fork
from tests.world.ports import free_port

MASTER_KEY = "bWFzdGVyLWtleS1vZi10aGUtdGVzdHMtMzItYnl0ZXM="
BOOTSTRAP_KEY = "a-bootstrap-key-for-the-acceptance-tests"
UPS_SECRET = "ups-test-credential"
START_SECONDS = 90
ROOT = Path(__file__).parents[2]


class RoleProcess:
    """One `statesvc ROLE` process."""

    def __init__(
        self,
        role: str,
        process: asyncio.subprocess.Process | ForkedProcess,
        port: int,
        log: Path,
        *,
        host: str = "127.0.0.1",
        metrics_port: str = "",
    ) -> None:
        self.role = role
        self.process = process
        self.port = port
        self.log = log
        self.host = host
        self.metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def kill(self) -> None:
        self.process.kill()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit_code(self, timeout_seconds: float = 40) -> int:
        return await asyncio.wait_for(self.process.wait(), timeout_seconds)


class Service:
    """The roles of one test, and a client of their API."""

    launcher: ClassVar[str] = "statesvc.__main__"
    """The module whose `main` runs a command line; that of a subclass may plant something first."""

    def __init__(
        self,
        *,
        service_dsn: str,
        owner_dsn: str,
        folder: Path,
        settings: Mapping[str, str | None],
        forks: bool = False,
    ) -> None:
        """Prepare a service. `settings` None: unset, where there would be one.

        `forks`: roles are forked as `statesvc up` does, not started.
        """
        self._forks = forks
        self.service_dsn = service_dsn
        self.owner_dsn = owner_dsn
        self._folder = folder
        wanted: dict[str, str | None] = {
            **os.environ,
            "DATABASE_URL": service_dsn,
            "STATESVC_OWNER_URL": owner_dsn,
            "STATESVC_MASTER_KEY": MASTER_KEY,
            "STATESVC_BOOTSTRAP_KEY": BOOTSTRAP_KEY,
            "STATESVC_WEBHOOK_SECRET_UPS": UPS_SECRET,
            "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "1",
            "STATESVC_SUBSCRIBER_ALLOW": "127.0.0.0/8",
            **settings,
        }
        self._environment = {name: value for name, value in wanted.items() if value is not None}
        self.roles: list[RoleProcess] = []
        self._session: aiohttp.ClientSession | None = None
        self._commands = 0

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {BOOTSTRAP_KEY}"},
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=30),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for role in self.roles:
            if role.process.returncode is None:
                role.process.kill()
        for role in self.roles:
            await role.process.wait()
        await self.session.close()

    @property
    def program(self) -> tuple[str, ...]:
        """Command line that starts it as a program."""
        return (sys.executable, "-m", self.launcher.removesuffix(".__main__"))

    @property
    def environment(self) -> Mapping[str, str]:
        return self._environment

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use the service as a context manager")
        return self._session

    @property
    def api(self) -> RoleProcess:
        return next(
            role for role in self.roles if role.role == "api" and role.process.returncode is None
        )

    async def start(self, *names: str, **settings: str) -> list[RoleProcess]:
        """Start roles and wait until they are ready."""
        started = [await self.spawn(name, settings) for name in names]
        await asyncio.gather(*(self.ready(role) for role in started))
        return started

    async def spawn(
        self,
        name: str,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        program: Sequence[str] | None = None,
        arguments: Sequence[str] = (),
    ) -> RoleProcess:
        """Start one role without waiting for it; `program` is how it is started
        instead of as all others.
        """
        port = free_port() if port is None else port
        log = self._folder / f"{name}-{len(self.roles)}.log"
        command = (name, "--port", str(port), *arguments)
        environment = {
            "STATESVC_METRICS_PORT": str(free_port()),
            **self._environment,
            **(settings or {}),
        }
        process: asyncio.subprocess.Process | ForkedProcess
        if self._forks and program is None:
            process = await fork(self.launcher, command, environment=environment, output=log)
        else:
            with log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(
                    *(*(program or self.program), *command),
                    env=environment,
                    cwd=ROOT,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
        role = RoleProcess(
            name,
            process,
            port,
            log,
            host=environment.get("STATESVC_HOST", "127.0.0.1"),
            metrics_port=environment["STATESVC_METRICS_PORT"],
        )
        self.roles.append(role)
        return role

    async def run(
        self, *arguments: str, settings: Mapping[str, str] | None = None, folder: Path = ROOT
    ) -> tuple[int, str, str]:
        """Run a command line to its end; return its exit code, what it printed, and what it
        wrote to standard error.
        """
        self._commands += 1
        output, errors = (
            self._folder / f"command-{self._commands}.{kind}" for kind in ("out", "err")
        )
        environment = {**self._environment, **(settings or {})}
        process = await fork(
            self.launcher,
            arguments,
            environment=environment,
            output=output,
            errors=errors,
            folder=folder,
        )
        return await process.wait(), output.read_text(), errors.read_text()

    async def command(self, *arguments: str) -> str:
        """Return what a command line printed that went well."""
        exit_code, output, errors = await self.run(*arguments)
        assert exit_code == 0, errors
        return output

    async def ready(self, role: RoleProcess) -> None:
        """Wait until it says that it is ready."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                if role.process.returncode is not None:
                    raise AssertionError(
                        f"{role.role} ended with"
                        f" {role.process.returncode}:\n{role.log.read_text()[-4000:]}"
                    )
                try:
                    async with self.session.get(f"{role.url}/readyz") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)

    async def get(self, path: str, **parameters: str) -> tuple[int, Any]:
        async with self.session.get(f"{self.api.url}{path}", params=parameters) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, body: bytes | str, **headers: str) -> tuple[int, Any]:
        async with self.session.post(f"{self.api.url}{path}", data=body, headers=headers) as answer:
            text = await answer.read()
            return answer.status, (
                await answer.json() if text and "json" in answer.content_type else text
            )

    async def webhook(self, carrier_id: str, body: bytes) -> tuple[int, Any]:
        return await self.post(
            f"/v1/webhooks/{carrier_id}", body, **{"Content-Type": "application/octet-stream"}
        )

    async def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Query the database as its owner."""
        async with await psycopg.AsyncConnection.connect(
            self.owner_dsn, autocommit=True
        ) as connection:
            return await (await connection.execute(query.encode(), parameters or None)).fetchall()

    async def value(self, query: str, *parameters: object) -> Any:
        return (await self.rows(query, *parameters))[0][0]

    async def drained(self, timeout_seconds: float = 60, *, pause_seconds: float = 0.05) -> None:
        """Wait until nothing is left in the inbox. Each look costs the server a connection."""
        async with asyncio.timeout(timeout_seconds):
            await until_false(
                lambda: self.value("SELECT EXISTS (SELECT FROM statesvc.inbox)"),
                pause_seconds=pause_seconds,
            )


async def until_false(ask: Callable[[], Awaitable[bool]], *, pause_seconds: float = 0.05) -> None:
    """Ask again and again; another process decides, so there is nothing to wait on."""
    while await ask():  # noqa: ASYNC110 - see above
        await asyncio.sleep(pause_seconds)


@asynccontextmanager
async def running(service: Service, *roles: str) -> AsyncIterator[Service]:
    """Run a service with these roles."""
    async with service:
        await service.start(*roles)
        yield service
