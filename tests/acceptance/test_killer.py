"""A message that makes its worker exit ends in the dead letters, at nobody else's cost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.start_child import spawn
from tests.acceptance.killer import DEADLY
from tests.acceptance.processes import Service, until_false
from tests.acceptance.test_crash import SHORT_LEASE
from tests.world.worker_harness import CARRIER_ID, push_body

ServiceMaker = Callable[..., Any]
DEATHS = 5
BYSTANDERS = 40


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
    service = await service_maker(tmp_path, SHORT_LEASE, kind=KillerService)
    async with service:
        await service.start("api")
        for number in range(BYSTANDERS):
            if number == BYSTANDERS // 2:
                assert (await service.webhook(CARRIER_ID, DEADLY))[0] == 200
            body = push_body({"number": f"N{number}", "status": "in_transit"})
            assert (await service.webhook(CARRIER_ID, body))[0] == 200
        async with supervised_worker(service):
            async with asyncio.timeout(60):
                await until_false(lambda: service.value("SELECT count(*) > 1 FROM statesvc.inbox"))
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
