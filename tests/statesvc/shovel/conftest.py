"""A broker of each kind for a module, and what the tests of the shovel ask of the inbox."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from psycopg import AsyncConnection

from events.crypto.keyring import body_context
from events.crypto.sealing import unsalted
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.world.brokers import RabbitMq, Redis, running_rabbitmq, running_redis
from tests.world.celery_fleet import TASK
from tests.world.database import Database
from tests.world.shell import MASTER_KEY, Shell, use

MAPPING = f"""
[[rules]]
task = "{TASK}"
carrier = "ups"
body = "args.0"
"""


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RabbitMq]:
    async with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as server:
        yield server


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def redis_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Redis]:
    async with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@dataclass(frozen=True)
class Arrived:
    """A message in the inbox."""

    task_id: str
    body: bytes
    available_at: datetime
    received_at: datetime
    carrier_id: str


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

    async def shovel(self, source: str, *more: str, exit_code: int = 0, mapping: str = MAPPING) -> str:
        """Until the source is empty."""
        given = ("--mapping", str(self.write_mapping(mapping)), "--backup", str(self.backup), "--until-empty", *more)
        return await self.shell("shovel", "--from", source, *given, exit_code=exit_code)

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        async with await AsyncConnection.connect(self.database.service_dsn, autocommit=True) as connection:
            return await (await connection.execute(query.encode(), parameters)).fetchall()

    async def arrived(self) -> list[Arrived]:
        """What waits in the inbox, opened."""
        query = """SELECT q.message_id, q.sealed_key, b.sealed, b.headers, q.available_at, q.received_at, q.carrier_id
            FROM statesvc.inbox q JOIN statesvc.body b USING (message_id, received_at)"""
        async with await AsyncConnection.connect(self.database.service_dsn, autocommit=True) as connection:
            keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        found = []
        for message_id, sealed_key, sealed, headers, available_at, received_at, carrier_id in await self.rows(query):
            context = body_context(message_id)
            body = unsalted(keyring.inbox.unwrap(sealed_key, context).open(sealed, context))
            found.append(Arrived(headers.get("celery-task-id", ""), body, available_at, received_at, carrier_id))
        return found

    async def dead_letters(self) -> list[tuple[str, str]]:
        return await self.rows("SELECT cause, detail FROM statesvc.dead_letter WHERE resolved_at IS NULL ORDER BY dead_letter_id")


@pytest.fixture
def world(database: Database, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    use(database, monkeypatch)
    return World(database, shell, tmp_path)


def body(number: int) -> str:
    """A carrier's message, one of its own for each number."""
    return json.dumps({"trackingNumber": f"1Z{number:016d}", "note": "é" * (number % 5)}, ensure_ascii=False)
