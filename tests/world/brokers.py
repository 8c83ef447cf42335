"""Brokers of a test's own: real servers on loopback with their data in a folder, killed with
SIGKILL and started again on the same port.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

import aio_pika
import nats
import nats.errors
from nats.js.api import StreamConfig

from tests.world.ports import free_port
from tests.world.programs import required

START_SECONDS: Final = 60
RABBITMQ: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's wrapper in PATH changes to the user and the folders of the machine's own server."""


class Server:
    """One broker. `folder` holds its data; `port` stays the same through its lives."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.lives = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        self.lives += 1
        log = (self.folder / f"log-{self.lives}").open("wb")
        with log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command(),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        async with asyncio.timeout(START_SECONDS):
            while not await self._answers():
                assert self._process.returncode is None, (
                    self.folder / f"log-{self.lives}"
                ).read_text()[-2000:]
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill all of its processes at once, as an out-of-memory killer or a power cut does."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def send(self, number: signal.Signals) -> None:
        """Signal all of its processes."""
        if self._process is not None:
            os.killpg(self._process.pid, number)

    def _command(self) -> Sequence[str]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    async def _answers(self) -> bool:
        """Return whether it speaks to a client."""
        raise NotImplementedError


class Nats(Server):
    """JetStream with its data on disk. `extra` goes into its configuration."""

    name = "nats"

    def __init__(self, folder: Path, extra: str = "") -> None:
        super().__init__(folder)
        self.program = required("nats-server", "nats-server")
        (folder / "nats.conf").write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{folder / "jetstream"}"'
            f" }}\n{extra}\n",
            encoding="utf-8",
        )

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def add_stream(self, name: str, subjects: Sequence[str], **options: Any) -> None:
        async with self.client() as client:
            await client.jetstream().add_stream(
                StreamConfig(name=name, subjects=list(subjects), **options)
            )

    async def stored(self, name: str) -> list[tuple[dict[str, str], bytes]]:
        """Return all messages of a stream in its order: headers and data."""
        async with self.client() as client:
            jetstream = client.jetstream()
            last = (await jetstream.stream_info(name)).state.last_seq
            found = [await jetstream.get_msg(name, seq=number) for number in range(1, last + 1)]
        return [(dict(one.headers or {}), one.data or b"") for one in found]

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Any]:
        client = await nats.connect(
            self.address, allow_reconnect=False, error_cb=_ignored, **options
        )
        try:
            yield client
        finally:
            await client.close()

    def _command(self) -> Sequence[str]:
        return self.program, "-c", str(self.folder / "nats.conf")

    async def _answers(self) -> bool:
        return await _speaks(self.port, b"", b"INFO")


def nats_cluster(folder: Path) -> list[Nats]:
    """Return three servers of a cluster, to be started together."""
    ports = [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    return [
        Nats(
            folder / f"node-{number}",
            f'server_name: "n{number}"\n'
            f'cluster {{ name: "c", listen: "127.0.0.1:{port}", routes: [{routes}] }}',
        )
        for number, port in enumerate(ports)
    ]


class RabbitMq(Server):
    """RabbitMQ with a port mapper of its own, so that nothing of it outlives the test or meets
    the machine's own broker.
    """

    name = "rabbitmq"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = required("rabbitmq-server", "rabbitmq-server", RABBITMQ)
        self._epmd = required("epmd", "erlang-base")
        self._mapper: asyncio.subprocess.Process | None = None
        self._mapper_port, self._peer_port = free_port(), free_port()
        self._node = f"statesvc-{uuid4().hex[:12]}@localhost"
        self._declared: list[tuple[str, str, str, dict[str, Any] | None]] = []
        (folder / "home").mkdir()
        (folder / "plugins").write_text("[].\n", encoding="utf-8")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndisk_free_limit.absolute ="
            " 1MB\nlog.file.level = warning\n",
            encoding="utf-8",
        )

    @property
    def address(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    async def start(self) -> None:
        if self._mapper is None:
            self._mapper = await asyncio.create_subprocess_exec(
                *(self._epmd, "-port", str(self._mapper_port), "-address", "127.0.0.1"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        await super().start()
        # consumers declare what they read from whenever they connect
        for declared in self._declared:
            await self._declare(*declared)

    async def stop(self) -> None:
        """Stop for good."""
        await self.kill()
        if self._mapper is not None:
            self._mapper.kill()
            await self._mapper.wait()

    async def declare(
        self,
        exchange: str,
        queue: str,
        *,
        routing_key: str = "",
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Declare a durable exchange, and a durable queue that is bound to it;
        again after each start.
        """
        self._declared.append((exchange, queue, routing_key, arguments))
        await self._declare(*self._declared[-1])

    def told(self) -> str:
        """Return what it wrote into its logs."""
        return "\n".join(
            log.read_text(errors="replace") for log in sorted(self.folder.glob("log/*.log"))
        )

    async def _declare(
        self, exchange: str, queue: str, routing_key: str, arguments: dict[str, Any] | None
    ) -> None:
        async with await aio_pika.connect(self.address) as connection:
            channel = await connection.channel()
            made = await channel.declare_exchange(
                exchange, aio_pika.ExchangeType.DIRECT, durable=True
            )
            held = await channel.declare_queue(queue, durable=True, arguments=arguments)
            await held.bind(made, routing_key)

    async def stored(self, queue: str) -> list[Any]:
        """Return all messages that wait, in the queue's order; they are taken."""
        found = []
        async with await aio_pika.connect(self.address) as connection:
            channel = await connection.channel()
            held = await channel.get_queue(queue)
            while (message := await held.get(no_ack=True, fail=False)) is not None:
                found.append(message)
        return found

    def _command(self) -> Sequence[str]:
        return (self.program,)

    def _environment(self) -> dict[str, str]:
        folder = str(self.folder)
        return {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("RABBITMQ_")
            },
            "HOME": f"{folder}/home",
            "ERL_EPMD_PORT": str(self._mapper_port),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._peer_port),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
        }

    async def _answers(self) -> bool:
        return await _speaks(self.port, b"AMQP\x00\x00\x09\x01", b"\x01")


class Redis(Server):
    """Redis with every write on the disk, as a broker needs it."""

    name = "redis"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = required("redis-server", "redis-server")

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> Sequence[str]:
        bound = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder))
        return self.program, *bound, "--appendonly", "yes", "--appendfsync", "always", "--save", ""

    async def _answers(self) -> bool:
        return await _speaks(self.port, b"PING\r\n", b"+PONG")


@asynccontextmanager
async def running_redis(folder: Path) -> AsyncIterator[Redis]:
    server = Redis(folder)
    try:
        await server.start()
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def running_nats(folder: Path, extra: str = "") -> AsyncIterator[Nats]:
    server = Nats(folder, extra)
    try:
        await server.start()
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def running_rabbitmq(folder: Path) -> AsyncIterator[RabbitMq]:
    server = RabbitMq(folder)
    try:
        await server.start()
        yield server
    except BaseException:
        # for pytest's report: a broker that was killed may have come back with less than it had
        sys.stdout.write(server.told())
        raise
    finally:
        await server.stop()


async def _speaks(port: int, greeting: bytes, beginning: bytes) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(greeting)
        async with asyncio.timeout(5):
            return (await reader.read(64)).startswith(beginning)
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


async def _ignored(_error: Exception) -> None:
    """Ignore what the client would print."""
