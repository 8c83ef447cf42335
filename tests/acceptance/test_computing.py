"""Evidence is computed in a process of its own: whatever becomes of it, the api answers and
webhooks are acknowledged.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.processes import RoleProcess, Service, until_false
from tests.acceptance.stories import ups_alert

ServiceMaker = Callable[..., Any]
NUMBER = "1ZCOMPUTE000000001"
EVIDENCE = f"/v1/shipments/ups/{NUMBER}/evidence"


def children(role: RoleProcess) -> list[int]:
    path = Path(f"/proc/{role.process.pid}/task/{role.process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def test_a_process_that_hangs_or_dies_in_the_middle_of_evidence_disturbs_nobody_else(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(
        tmp_path,
        {"STATESVC_API_COMPUTING_PROCESSES": "1", "STATESVC_API_COMPUTED_PER_KEY_MAX": "1"},
    )
    async with service:
        api, *_ = await service.start("api", "worker", "sealer")
        assert children(api) == [], "none before it is needed"
        assert (await service.webhook("ups", ups_alert(NUMBER, "I/OT", day=3, minute=300).body))[
            0
        ] == 200

        async def unsealed() -> bool:
            return (await service.get(EVIDENCE))[0] != 200

        async with asyncio.timeout(30):
            await until_false(unsealed)
        (computing,) = children(api)
        os.kill(computing, signal.SIGSTOP)
        waiting = asyncio.create_task(evidence(service))
        async with asyncio.timeout(20):
            # the call has reached the api once the key may have no other: an audit
            # counts as evidence does
            await until_false(lambda: audits(service))
        assert (await service.webhook("ups", ups_alert(NUMBER, "I/OT", day=3, minute=301).body))[
            0
        ] == 200
        assert (await service.get(f"/v1/shipments/ups/{NUMBER}"))[0] == 200
        assert not waiting.done()
        os.kill(computing, signal.SIGKILL)
        status, problem = await waiting
        assert (status, problem["code"]) == (500, "internal_error")
        assert (await service.get(EVIDENCE))[0] == 200
        (another,) = children(api)
        assert another != computing
        api.kill()
        await api.process.wait()
        async with asyncio.timeout(20):
            while is_running(another):  # noqa: ASYNC110 - it ends by itself
                await asyncio.sleep(0.02)


async def evidence(service: Service) -> tuple[int, Any]:
    """Ask for evidence until it is this call's turn."""
    # another process decides
    while (answer := await service.get(EVIDENCE))[0] == 429:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return answer


async def audits(service: Service) -> bool:
    async with service.session.get(f"{service.api.url}/v1/shipments/ups/{NUMBER}/audit") as answer:
        if answer.status != 200:
            assert (answer.status, answer.headers["Retry-After"], answer.content_type) == (
                429,
                "1",
                "application/problem+json",
            )
        return answer.status == 200
