"""A broker of each kind for a module, and what the tests of the shovel ask of the inbox."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis
from psycopg import AsyncConnection

from tests.world.brokers import RabbitMq, Redis, running_rabbitmq, running_redis
from tests.world.database import Database
from tests.world.shell import Shell, use
from tests.world.shovel_story import MAPPING, Arrived, read_inbox


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def rabbitmq(
    own_processes: None,  # noqa: ARG001 - a mark
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RabbitMq]:
    async with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as server:
        yield server


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def redis_server(
    own_processes: None,  # noqa: ARG001 - a mark
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Redis]:
    async with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def client(redis_server: Redis) -> Any:
    """Open a client of a Redis that holds nothing but what kombu declared, which it remembers for
    the life of this process.
    """
    with redis.Redis(port=redis_server.port) as found:
        for key in [key for key in found.scan_iter("*") if not key.startswith(b"_kombu")]:
            found.delete(key)
        yield found


@dataclass(frozen=True)
class World:
    """A migrated database, a mapping and a folder for backups."""

    database: Database
    shell: Shell
    folder: Path

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    def write_mapping(self, text: str) -> Path:
        path = self.folder / "mapping.toml"
        path.write_text(text, encoding="utf-8")
        return path

    async def shovel(
        self, source: str, *more: str, exit_code: int = 0, mapping: str = MAPPING
    ) -> str:
        """Shovel until the source is empty."""
        given = (
            "--mapping",
            str(self.write_mapping(mapping)),
            "--backup",
            str(self.backup),
            "--until-empty",
            *more,
        )
        return await self.shell("shovel", "--from", source, *given, exit_code=exit_code)

    async def shovel_lines(self, *lines: Any, given: tuple[str, ...] = (), **options: Any) -> str:
        """Shovel a file with a line of JSON for each."""
        path = self.folder / "old.ndjson"
        path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
        return await self.shovel(str(path), *given, **options)

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        async with await AsyncConnection.connect(
            self.database.service_dsn, autocommit=True
        ) as connection:
            return await (await connection.execute(query.encode(), parameters)).fetchall()

    async def arrived(self) -> list[Arrived]:
        """Return what waits in the inbox, opened."""
        return await read_inbox(self.database.service_dsn)

    async def dead_letters(self) -> list[tuple[str, str]]:
        return await self.rows(
            "SELECT cause, detail FROM statesvc.dead_letter WHERE resolved_at IS NULL ORDER BY"
            " dead_letter_id"
        )


@pytest.fixture
def world(
    database: Database, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    use(database, monkeypatch)
    return World(database, shell, tmp_path)
