"""An idle service asks the database next to nothing, and is awake at once."""

import asyncio
import re
import time
from pathlib import Path
from statistics import median

from psycopg import AsyncConnection, sql

from tests.acceptance.processes import Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.world import postgres

STATEMENTS_A_MINUTE_MAX = 60
MEASURED_SECONDS = 10
QUIET_SECONDS = 1.5
"""A service that asked no more than once in so long has started."""
VISIBLE_SECONDS_MAX = 0.1
VISIBLE_IN_ACKS_MAX = 40
"""A busy machine is slow at everything: so many times as long as an acknowledgement takes there.

Whoever sleeps on takes far longer.
"""
OF_THE_POOLER = (
    "SET application_name=",
    "BEGIN",
    "SET LOCAL ",
    "-- The same for the transaction alone.",
    "COMMIT",
)
"""PgBouncer says whose statement follows, and that one brings its transaction along, in the same
round trip: no reason to be awake.
"""
STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]+): (.*)")


async def test_idle_costs_few_statements_and_a_message_is_visible_at_once(
    service_maker: ServiceMaker, server: postgres.Server, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    log = await _log_statements(service, server)
    async with service:
        await service.start("ingress", "api", "worker", "notifier", "sealer")
        await until_false(lambda: _is_still_starting(log), pause_seconds=0)
        before = len(_statements(log))
        await asyncio.sleep(MEASURED_SECONDS)
        asked = _statements(log)[before:]
        assert len(asked) * 60 / MEASURED_SECONDS <= STATEMENTS_A_MINUTE_MAX, asked

        visible = []
        for place in range(10):
            visible.append(await _visible(service, f"1ZIDLE{place:010d}"))
            await asyncio.sleep(0.1)
        seconds_max = max(
            VISIBLE_SECONDS_MAX,
            VISIBLE_IN_ACKS_MAX * median(acknowledged for acknowledged, _ in visible),
        )
        assert sorted(shown for _, shown in visible)[8] < seconds_max, visible


async def _is_still_starting(log: Path) -> bool:
    before = _statements(log)
    await asyncio.sleep(QUIET_SECONDS)
    return len(_statements(log)) > len(before) + 1


def _statements(log: Path) -> list[str]:
    return [
        statement
        for statement in STATEMENT.findall(log.read_text())
        if not statement.startswith(OF_THE_POOLER)
    ]


async def _visible(service: Service, number: str) -> tuple[float, float]:
    """Return the seconds from the push until it was acknowledged, and until the API showed it."""
    started = time.perf_counter()
    status, _ = await service.webhook("ups", ups_alert(number, "I/OT", day=3, minute=300).body)
    acknowledged = time.perf_counter() - started
    assert status == 200

    async def is_unknown() -> bool:
        return (await service.get(f"/v1/shipments/ups/{number}"))[0] != 200

    await until_false(is_unknown, pause_seconds=0.002)
    return acknowledged, time.perf_counter() - started


async def _log_statements(service: Service, server: postgres.Server) -> Path:
    """Have the server log what the service's role asks this database, and return where."""
    database = await service.value("SELECT current_database()")
    async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as connection:
        await connection.execute(
            sql.SQL("ALTER ROLE statesvc_service IN DATABASE {} SET log_statement = 'all'").format(
                sql.Identifier(database)
            )
        )
        cursor = await connection.execute(
            "SELECT current_setting('data_directory'), pg_current_logfile()"
        )
        row = await cursor.fetchone()
    assert row is not None
    folder, file = row
    return Path(folder, file)
