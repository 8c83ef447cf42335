"""An idle service asks the database next to nothing, and is awake at once."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection, sql

from tests import postgres
from tests.acceptance.processes import Service
from tests.acceptance.stories import ups_alert

ServiceMaker = Callable[..., Any]
STATEMENTS_A_MINUTE_MAX = 60
MEASURED_SECONDS = 20
STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]+): (.*)")


async def test_idle_costs_few_statements_and_a_message_is_visible_at_once(
    service_maker: ServiceMaker, server: postgres.Server, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    log = await _log_statements(service, server)
    async with service:
        await service.start("api", "worker", "notifier", "sealer")
        await asyncio.sleep(3)
        begun = len(log.read_text())
        await asyncio.sleep(MEASURED_SECONDS)
        asked = STATEMENT.findall(log.read_text()[begun:])
        assert len(asked) * 60 / MEASURED_SECONDS <= STATEMENTS_A_MINUTE_MAX, asked

        seconds = []
        for place in range(20):
            seconds.append(await _seconds_until_visible(service, f"1ZIDLE{place:010d}"))
            await asyncio.sleep(0.3)
        assert sorted(seconds)[18] < 0.1, seconds


async def _seconds_until_visible(service: Service, number: str) -> float:
    started = time.perf_counter()
    status, _ = await service.webhook("ups", ups_alert(number, "I/OT", day=3, minute=300).body)
    assert status == 200
    while (await service.get(f"/v1/shipments/ups/{number}"))[0] != 200:
        pass
    return time.perf_counter() - started


async def _log_statements(service: Service, server: postgres.Server) -> Path:
    """Has the server log what the service's role asks this database, and answers where."""
    database = await service.value("SELECT current_database()")
    async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as connection:
        await connection.execute(
            sql.SQL("ALTER ROLE statesvc_service IN DATABASE {} SET log_statement = 'all'").format(sql.Identifier(database))
        )
        cursor = await connection.execute("SELECT current_setting('data_directory'), pg_current_logfile()")
        row = await cursor.fetchone()
    assert row is not None
    folder, file = row
    return Path(folder, file)
