"""Workers that die, are told to go, or are killed by a message; ids with other facts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.start_child import spawn
from tests.acceptance.killer import DEADLY
from tests.acceptance.processes import Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import messages
from tests.world.waiting import until
from tests.world.worker_harness import CARRIER_ID, push_body

LEASED_OR_EMPTY = (
    "SELECT EXISTS (SELECT FROM statesvc.inbox WHERE token IS NOT NULL) OR NOT EXISTS (SELECT FROM"
    " statesvc.inbox)"
)
DEATHS = 5
BYSTANDERS = 40
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
    async with await service_maker(tmp_path, SHORT_LEASE) as service:
        await service.start("api")
        acknowledged = await push(service, 600)
        for _ in range(3):
            (worker,) = await service.start("worker")
            await until(lambda: service.value(LEASED_OR_EMPTY), pause_seconds=0.001)
            worker.kill()
            await worker.exit_code()
        await service.start("worker")
        await service.drained(90)
        await assert_each_took_effect_once(service, acknowledged)


class KillerService(Service):
    """Knows the carrier with the deadly normalizer."""

    launcher = "tests.acceptance.killer"


@asynccontextmanager
async def supervised_worker(service: Service) -> AsyncIterator[None]:
    """Run a worker as `statesvc up` keeps it: started again whenever it dies."""
    command = [*service.program, "worker", "--port", "0"]
    # its pauses between deaths are not what is shown here
    program = ChildProgram(
        name="worker", start=spawn(command, service.environment), longest_pause_seconds=0.1
    )
    child = ChildProcess(program)
    running = asyncio.create_task(child.run())
    try:
        yield
    finally:
        child.kill()
        await running


async def test_a_message_that_kills_its_worker_is_given_up_after_five_and_its_batch_loses_one_lease(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path, SHORT_LEASE, kind=KillerService) as service:
        await service.start("api")
        for number in range(BYSTANDERS):
            if number == BYSTANDERS // 2:
                assert (await service.webhook(CARRIER_ID, DEADLY))[0] == 200
            body = push_body({"number": f"N{number}", "status": "in_transit"})
            assert (await service.webhook(CARRIER_ID, body))[0] == 200
        async with supervised_worker(service):
            few = "SELECT count(*) <= 1 FROM statesvc.inbox"
            await until(lambda: service.value(few), 60)
            # pushed while the killer still kills: it waits for nobody
            assert (
                await service.webhook(
                    CARRIER_ID, push_body({"number": "LATER", "status": "in_transit"})
                )
            )[0] == 200
            await service.drained(120)
        letters = await service.rows(
            "SELECT cause, attempts FROM statesvc.dead_letter WHERE kind = 'message'"
        )
        assert letters == [("worker_died", DEATHS)]
        attempts = await service.rows(
            "SELECT attempts, count(*) FROM statesvc.message GROUP BY 1 ORDER BY 1"
        )
        assert attempts == [(1, 1), (2, BYSTANDERS)], (
            "one lease lost by each that shared the first batch, none by the later one"
        )
