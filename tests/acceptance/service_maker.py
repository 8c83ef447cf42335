"""Services on databases of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Service
from tests.world import pgbouncer, postgres

ServiceMaker = Callable[..., Awaitable[Any]]


@pytest.fixture
async def service_maker(
    own_processes: None,  # noqa: ARG001 - a mark
    server: postgres.Server,
    request: pytest.FixtureRequest,
) -> AsyncIterator[ServiceMaker]:
    """Make services, each on a fresh migrated database; `settings` are environment
    variables, `kind` a subclass.

    `behind_pooler` puts a PgBouncer in transaction mode between its processes and the server, and
    so does STATESVC_TEST_PGBOUNCER=1 for all. Roles are forked as `statesvc up` forks them, unless
    they are wanted `as_programs`; soak stories start programs.
    """
    is_soak = request.node.get_closest_marker("soak") is not None
    async with AsyncExitStack() as stack:

        async def make(
            folder: Path,
            settings: Mapping[str, str] | None = None,
            *,
            kind: type[Service] = Service,
            behind_pooler: bool = pgbouncer.EVERYWHERE,
            as_programs: bool = False,
        ) -> Service:
            # a test waits for nothing else
            folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240
            name = postgres.create_database(server)
            # a role that owns something in it ends next
            stack.callback(lambda: postgres.drop_database(server, name).result())
            mine = server.on(name)
            pooler = await stack.enter_async_context(
                pgbouncer.between(mine.service_dsn, wanted=behind_pooler)
            )
            return kind(
                service_dsn=mine.service_dsn,
                owner_dsn=mine.owner_dsn,
                folder=folder,
                settings={**pooler, **(settings or {})},
                forks=not (as_programs or is_soak),
            )

        yield make
