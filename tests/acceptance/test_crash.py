"""Workers that die, and workers that are told to go."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Service, until_false
from tests.acceptance.stories import messages

ServiceMaker = Callable[..., Any]
LEASE_SECONDS = "3"
SHORT_LEASE = {
    "STATESVC_WORKER_LEASE_SECONDS": LEASE_SECONDS,
    "STATESVC_WORKER_STATEMENT_SECONDS": "2",
    "STATESVC_WORKER_LOCK_SECONDS": "1",
    "STATESVC_WORKER_IDLE_IN_TRANSACTION_SECONDS": "2",
    "STATESVC_WORKER_SWEEP_SECONDS": "1",
}


async def push(service: Service, count: int) -> set[str]:
    queue = messages(count, seed=7)
    acknowledged: set[str] = set()

    async def client() -> None:
        while queue:
            message = queue.pop()
            status, answer = await service.webhook(message.carrier_id, message.body)
            assert status == 200
            acknowledged.add(answer["message_id"])

    await asyncio.gather(*(client() for _ in range(8)))
    return acknowledged


async def assert_each_took_effect_once(service: Service, acknowledged: set[str]) -> None:
    settled = {str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.message")}
    assert settled == acknowledged
    twice = (
        "SELECT count(*) FROM (SELECT carrier_id, event_id FROM statesvc.event GROUP BY 1, 2 HAVING"
        " count(*) > 1) d"
    )
    assert await service.value(twice) == 0
    gaps = (
        "SELECT count(*) FROM (SELECT max(version) - count(*) AS gap FROM statesvc.event GROUP BY"
        " shipment_id) g WHERE gap <> 0"
    )
    assert await service.value(gaps) == 0
    assert (
        await service.value("SELECT count(*) FROM statesvc.dead_letter WHERE kind = 'message'") == 0
    )


async def test_a_worker_killed_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, SHORT_LEASE)
    async with service:
        await service.start("api")
        acknowledged = await push(service, 600)
        for _ in range(3):
            (worker,) = await service.start("worker")
            async with asyncio.timeout(20):
                # a lease, or nothing left to lease
                idle = (
                    "SELECT EXISTS (SELECT FROM statesvc.inbox) AND NOT EXISTS (SELECT FROM"
                    " statesvc.inbox WHERE token IS NOT NULL)"
                )
                # the same query each time
                await until_false(lambda: service.value(idle), pause_seconds=0.001)  # noqa: B023
            worker.kill()
            await worker.exit_code()
        await service.start("worker")
        await service.drained(90)
        await assert_each_took_effect_once(service, acknowledged)


async def test_a_worker_that_is_told_to_go_finishes_exits_0_and_leaves_no_lease(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {"STATESVC_WORKER_SWEEP_SECONDS": "2"})
    async with service:
        await service.start("api")
        acknowledged = await push(service, 600)
        (worker,) = await service.start("worker")
        worker.send(signal.SIGTERM)
        assert await worker.exit_code() == 0
        assert (
            await service.value("SELECT count(*) FROM statesvc.inbox WHERE token IS NOT NULL") == 0
        )
        await service.start("worker")
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)


async def test_hold_keeps_messages_and_takes_effect_at_the_next_claim(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    async with service:
        await service.start("api", "worker")
        async with service.session.put(
            f"{service.api.url}/v1/rollouts/ups", json={"hold": True, "why": "test"}
        ) as answer:
            assert answer.status == 200
        acknowledged = await push(service, 60)
        # a message that was stored behind the low-water mark waits for the next sweep, 30 s at most
        async with asyncio.timeout(60):
            await until_false(
                lambda: service.value(
                    "SELECT EXISTS (SELECT FROM statesvc.inbox WHERE carrier_id <> 'ups')"
                )
            )
        held = await service.value("SELECT count(*) FROM statesvc.inbox")
        assert held > 0
        assert (
            await service.value("SELECT count(*) FROM statesvc.event WHERE carrier_id = 'ups'") == 0
        )
        async with service.session.put(
            f"{service.api.url}/v1/rollouts/ups", json={"hold": False, "why": "test"}
        ) as answer:
            assert answer.status == 200
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)
        assert await service.rows(
            "SELECT verb, target FROM statesvc.action ORDER BY recorded_at"
        ) == [
            ("hold", "carrier ups"),
            ("release", "carrier ups"),
        ]
