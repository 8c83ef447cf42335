"""Each role on SIGTERM: readiness first, then no new work, then what was begun is finished, then
leases go back.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from psycopg import AsyncConnection

from tests.acceptance.processes import RoleProcess, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.slow_request import slow_request
from tests.acceptance.stories import ups_alert
from tests.acceptance.test_crash import assert_each_took_effect_once, push
from tests.world.waiting import until


def scan(place: int) -> bytes:
    return ups_alert(f"1ZSTOP{place:010d}", "I/OT", day=3, minute=300).body


async def start_program(service: Service, name: str) -> RoleProcess:
    """Start the role that a test stops, as a program of its own; those around it are forked."""
    role = await service.spawn(name, program=service.program)
    await service.ready(role)
    return role


async def is_unready(role: RoleProcess, session: aiohttp.ClientSession) -> bool:
    async with session.get(f"{role.url}/readyz") as answer:
        return answer.status != 200


async def test_the_api_serves_on_while_it_is_not_ready_and_answers_every_request_that_it_took(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path, {"STATESVC_DRAIN_SECONDS": "1"}) as service:
        api = await start_program(service, "api")
        acknowledged: list[str] = []
        taken_while_draining: list[str] = []
        is_told, is_gone = asyncio.Event(), asyncio.Event()

        async def client(first: int) -> None:
            # as behind a load balancer: it sends nothing more once it has noticed
            while not is_gone.is_set():
                status, answer = await service.webhook("ups", scan(first + len(acknowledged) * 8))
                assert status == 200
                acknowledged.append(answer["message_id"])
                if is_told.is_set():
                    taken_while_draining.append(answer["message_id"])

        clients = [asyncio.create_task(client(place)) for place in range(4)]
        async with slow_request(api.port, "fedex", b"{}  ") as slow:
            await asyncio.sleep(0.2)
            api.send(signal.SIGTERM)
            await until(lambda: is_unready(api, service.session), 5)
            is_told.set()
            await asyncio.sleep(0.3)
            is_gone.set()
            await asyncio.gather(*clients)
            await asyncio.sleep(1.2)
            assert api.process.returncode is None, "a request is still on its way"
            assert await slow.finish() == 200
        assert await api.exit_code() == 0
        assert taken_while_draining
        kept = {str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.inbox")}
        assert set(acknowledged) < kept
        assert len(kept) == len(set(acknowledged)) + 1


@asynccontextmanager
async def log_locked(service: Service) -> AsyncIterator[AsyncConnection[Any]]:
    """Lock the log: nobody can append until the connection commits."""
    async with await AsyncConnection.connect(service.owner_dsn) as connection:
        await connection.execute("LOCK TABLE statesvc.event IN EXCLUSIVE MODE")
        yield connection
        await connection.commit()


async def leased(service: Service) -> int:
    count: int = await service.value("SELECT count(*) FROM statesvc.inbox WHERE token IS NOT NULL")
    return count


async def test_a_worker_finishes_the_batch_that_it_has_begun_and_claims_no_other(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(
        tmp_path, {"STATESVC_WORKER_BATCH_MIN": "8", "STATESVC_WORKER_BATCH_MAX": "8"}
    ) as service:
        await service.start("api")
        acknowledged = await push(service, 120)
        async with log_locked(service) as lock:
            worker = await start_program(service, "worker")
            await until(lambda: leased(service))
            worker.send(signal.SIGTERM)
            await until(lambda: '"stopping"' in worker.log.read_text())
            begun = await leased(service)
            await asyncio.sleep(0.3)
            assert worker.process.returncode is None
            await lock.commit()
        assert await worker.exit_code() == 0
        assert await leased(service) == 0
        settled = await service.value("SELECT count(*) FROM statesvc.message")
        # a claim that was on its way at the signal may add its batch
        assert 0 < settled <= begun + 8 < len(acknowledged)
        await service.start("worker")
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)
