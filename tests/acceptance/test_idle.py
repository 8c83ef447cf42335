"""An idle service asks the database next to nothing, and is awake at once."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acceptance.stories import ups_alert

ServiceMaker = Callable[..., Any]
STATEMENTS_A_MINUTE_MAX = 60
MEASURED_SECONDS = 20


async def test_idle_costs_few_statements_and_a_message_is_visible_at_once(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service = await service_maker(tmp_path, {})
    async with service:
        await service.start("api", "worker", "notifier")
        await asyncio.sleep(2)
        before = await _transactions(service)
        await asyncio.sleep(MEASURED_SECONDS)
        # the measurement asks too: its own transaction is not the service's
        spent = await _transactions(service) - before - 1
        assert spent * 60 / MEASURED_SECONDS <= STATEMENTS_A_MINUTE_MAX

        seconds = []
        for place in range(20):
            number = f"1ZIDLE{place:010d}"
            message = ups_alert(number, "I/OT", day=3, minute=300)
            started = time.perf_counter()
            status, _ = await service.webhook("ups", message.body)
            assert status == 200
            while (await service.get(f"/v1/shipments/ups/{number}"))[0] != 200:
                pass
            seconds.append(time.perf_counter() - started)
            await asyncio.sleep(0.2)
        assert sorted(seconds)[18] < 0.1


async def _transactions(service: Any) -> int:
    """In autocommit each statement is a transaction of its own; statistics arrive when a connection has been quiet for a second."""
    await asyncio.sleep(1.5)
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    spent: int = await service.value(query)
    return spent
