"""The PostgreSQL server of a bench: the embedded one as it is shipped (fsync on), with databases
copied from templates.

A filled template is copied for every run and every peer, so that all start from the same bytes.
"""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from psycopg import AsyncConnection, sql

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.embedded_config import WAL_MIB_MIN
from statesvc.database.migrator import migrate

TEMPLATE: Final = "bench_template"
SLOW_DISK_MICROSECONDS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Place:
    """One database, as each role sees it."""

    service: str
    owner: str
    superuser: str

    def on(self, name: str) -> "Place":
        """Return another database of the same server.

        URLs, because not every driver reads libpq's key=value form.
        """
        return Place(
            *(
                urlsplit(dsn)._replace(path=f"/{name}").geturl()
                for dsn in (self.service, self.owner, self.superuser)
            )
        )

    async def execute(self, *statements: Any) -> None:
        """Run statements as superuser, each on its own."""
        async with await AsyncConnection.connect(self.superuser, autocommit=True) as connection:
            for statement in statements:
                await connection.execute(statement)

    async def value(self, query: Any) -> Any:
        rows = await self.rows(query)
        return rows[0][0] if rows else None

    async def rows(self, query: Any) -> list[Any]:
        async with await AsyncConnection.connect(self.superuser, autocommit=True) as connection:
            return await (await connection.execute(query)).fetchall()


class BenchServer:
    """Started with `start`; everything goes away with `stop`.

    `settings`: of the server, beside those it is shipped with.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._folder = folder
        # when each transaction commits is recorded: `saturation` reads from it how long messages
        # took
        self._embedded = EmbeddedServer(
            folder / "data", overrides={"track_commit_timestamp": "on", **settings}
        )
        self._numbers = count(1)
        self._filled: set[str] = set()
        self.root = Place("", "", "")

    async def start(self) -> None:
        dsns = self._embedded.start()
        assert dsns.superuser is not None
        self.root = Place(dsns.service, dsns.owner, dsns.superuser).on("postgres")
        await self.root.execute(
            sql.SQL("CREATE DATABASE {} OWNER statesvc_owner").format(sql.Identifier(TEMPLATE))
        )
        template = self.root.on(TEMPLATE)
        await migrate(template.owner, template.service)
        await self._have_log_files()

    async def _have_log_files(self) -> None:
        """Make files of the write-ahead log to use again, as any server has after its first
        gigabytes.

        While one is made, all commits wait.
        """
        segments = (
            WAL_MIB_MIN
            * 1024
            * 1024
            // await self.root.value("SELECT pg_size_bytes(current_setting('wal_segment_size'))")
        )
        filled = ("SELECT pg_logical_emit_message(false, 'bench', '')", "SELECT pg_switch_wal()")
        await self.root.execute(*filled * segments, "CHECKPOINT")

    def stop(self) -> None:
        self._embedded.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def filled(self, name: str, fill: Callable[[Place], Awaitable[None]]) -> str:
        """Return the template of this name; made by `fill` when it is asked for first."""
        if name not in self._filled:
            await self._copy(TEMPLATE, name)
            place = self.root.on(name)
            await fill(place)
            await place.execute("VACUUM ANALYZE", "CHECKPOINT")
            self._filled.add(name)
        return name

    @asynccontextmanager
    async def database(
        self, template: str = TEMPLATE, *, slow_disk: bool = False
    ) -> AsyncIterator[Place]:
        """Copy a database for one run.

        `slow_disk`: every commit waits 2 ms before it flushes, as on a disk that takes so long.
        """
        name = f"bench_{next(self._numbers)}"
        await self._copy(template, name)
        if slow_disk:
            await self.root.execute(
                sql.SQL("ALTER DATABASE {} SET commit_delay = {}").format(
                    sql.Identifier(name), sql.Literal(SLOW_DISK_MICROSECONDS)
                ),
                sql.SQL("ALTER DATABASE {} SET commit_siblings = 0").format(sql.Identifier(name)),
            )
        await self.root.execute("CHECKPOINT")
        try:
            yield self.root.on(name)
        finally:
            await self.root.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )

    async def _copy(self, template: str, name: str) -> None:
        await self.root.execute(
            sql.SQL(
                "CREATE DATABASE {} TEMPLATE {} OWNER statesvc_owner STRATEGY file_copy"
            ).format(sql.Identifier(name), sql.Identifier(template))
        )
