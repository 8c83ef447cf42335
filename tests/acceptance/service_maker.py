"""Services on databases of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from tests import postgres
from tests.acceptance.processes import Service

ServiceMaker = Callable[..., Awaitable[Service]]


@pytest.fixture
async def service_maker(server: postgres.Server) -> AsyncIterator[ServiceMaker]:
    """Makes services, each on a fresh migrated database; `settings` are environment variables."""
    names: list[str] = []

    async def make(folder: Path, settings: Mapping[str, str] | None = None) -> Service:
        folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - a test waits for nothing else
        names.append(await postgres.create_database(server))
        mine = server.on(names[-1])
        return Service(service_dsn=mine.service_dsn, owner_dsn=mine.owner_dsn, folder=folder, settings=settings or {})

    yield make
    for name in names:
        await postgres.drop_database(server, name)
