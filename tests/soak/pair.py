"""Two servers, one following the other synchronously: what is acknowledged by one
is on the disks of both.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.embedded_config import FILE_NAME, configuration
from statesvc.database.migrator import migrate
from statesvc.database.postgres_programs import MAJOR, programs
from statesvc.database.server_user import ServerUser, choose_user, with_access
from tests.acceptance.processes import until_false
from tests.soak.server import on_tcp
from tests.world import postgres
from tests.world.ports import free_port

_FOLLOWING: Final = (
    "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND"
    " state = 'streaming')"
)

_STARTUP_LOG: Final = "startup.log"


class Node:
    """One data folder, always on the same port."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"{postgres.FOLDER_PREFIX}{os.getpid()}-soak-"))
        self.port = free_port()
        self.embedded = EmbeddedServer(self._folder / "data", tcp_port=self.port)
        self.data = self._folder / "data" / "postgres"
        self._sockets = self._folder / "sockets"

    @property
    def _user(self) -> ServerUser:
        """Known once the data folder's parent is there."""
        return with_access(
            choose_user(self.data.parent),
            folder=self.data.parent,
            postgres=programs(MAJOR) / "postgres",
        )

    def _run(self, program: str, *arguments: str | Path, **environment: str) -> None:
        ended = self._user.run([programs(MAJOR) / program, *arguments], environment=environment)
        if ended.returncode != 0:
            told = self.data / _STARTUP_LOG
            raise RuntimeError(
                f"{program}: {ended.stdout}\n{told.read_text() if told.exists() else ''}"
            )

    def follow(self, primary: "Node", superuser_dsn: str) -> None:
        """Become a standby with a copy of the primary's data; its own is thrown away."""
        if not self.data.parent.exists():
            self.data.parent.mkdir(mode=0o700)
            owner = choose_user(primary.data)
            owner.give(self._folder)
            owner.give(primary._folder)  # noqa: SLF001 - the same class
            owner.give(self.data.parent)
        shutil.rmtree(self.data, ignore_errors=True)
        address = conninfo_to_dict(superuser_dsn)
        source = make_conninfo(
            host="127.0.0.1", port=primary.port, user=address["user"], password=address["password"]
        )
        self._run(
            "pg_basebackup", "-D", self.data, "-d", source, "-R", "-X", "stream", "-c", "fast"
        )
        # the lock of one that was killed names a process that may still be a zombie
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._sockets.mkdir(mode=0o700)
        self._user.give(self._sockets)
        (self.data / FILE_NAME).write_text(
            configuration(
                folder=self.data, socket_dir=self._sockets, tcp_port=self.port, overrides={}
            )
        )
        self._run("pg_ctl", "start", "-w", "-s", "-D", self.data, "-l", self.data / _STARTUP_LOG)

    def promote(self) -> None:
        """Become the primary."""
        self._run("pg_ctl", "promote", "-w", "-s", "-D", self.data)

    def run_script(self, script: str, **variables: str) -> None:
        """Run commands of a page as the server's user."""
        path = f"{programs(MAJOR)}:{os.environ['PATH']}"
        ended = self._user.run(["/bin/sh", "-euc", script], environment={"PATH": path, **variables})
        assert ended.returncode == 0, ended.stdout

    def kill(self) -> None:
        """Send SIGKILL to the server and all of its processes: as if its machine were gone."""
        postgres.kill_all(self.data)

    def remove(self) -> None:
        """End it, and leave nothing behind."""
        self.embedded.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class Pair:
    """`dsns` name both and lead to whichever takes writes."""

    def __init__(self) -> None:
        self.primary, self.standby = Node(), Node()
        self._first = postgres.Server("", "", "")
        self.dsns = postgres.Server("", "", "")

    async def start(self) -> None:
        made = await asyncio.to_thread(self.primary.embedded.start)
        assert made.superuser is not None
        self._first = postgres.Server(made.superuser, made.owner, made.service)
        ports = f"{self.primary.port},{self.standby.port}"
        self.dsns = on_tcp(self._first, ports, target_session_attrs="read-write")
        await migrate(self._on(self.primary).owner_dsn, self._on(self.primary).service_dsn)
        await self.join()

    def _on(self, node: Node) -> postgres.Server:
        return on_tcp(self._first, str(node.port))

    async def join(self) -> None:
        """Have the other node copy the primary and follow it; return once commits wait for it."""
        await asyncio.to_thread(self.standby.follow, self.primary, self._first.superuser_dsn)
        async with await AsyncConnection.connect(
            self._on(self.primary).superuser_dsn, autocommit=True
        ) as connection:
            await connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await connection.execute("SELECT pg_reload_conf()")

            async def alone() -> bool:
                return await (await connection.execute(_FOLLOWING)).fetchone() != (True,)

            async with asyncio.timeout(60):
                await until_false(alone)

    async def fail_over(self) -> None:
        """Kill the primary; the standby takes its place and waits for nobody."""
        self.primary.kill()
        self.primary, self.standby = self.standby, self.primary
        await asyncio.to_thread(self.primary.promote)
        async with await AsyncConnection.connect(
            self._on(self.primary).superuser_dsn, autocommit=True
        ) as connection:
            await connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await connection.execute("SELECT pg_reload_conf()")

    async def move(self, script: str) -> None:
        """Exchange the two by the commands of a page."""
        old, new = self.primary, self.standby
        variables = {
            "OLD_DATA": str(old.data),
            "NEW_DATA": str(new.data),
            "NEW_SERVER": self._on(new).superuser_dsn,
        }
        await asyncio.to_thread(new.run_script, script, **variables)
        self.primary, self.standby = new, old

    async def stop(self) -> None:
        for node in (self.standby, self.primary):
            await asyncio.to_thread(node.remove)


@asynccontextmanager
async def pair_of_servers() -> AsyncIterator[Pair]:
    """Run a migrated primary with its synchronous standby, for the time of the block."""
    pair = Pair()
    try:
        await pair.start()
        yield pair
    finally:
        await pair.stop()
