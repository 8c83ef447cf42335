"""Rolling out under load, with three worker processes: turned, held, turned back, and
corrected by one command.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.test_crash import assert_each_took_effect_once
from tests.statesvc.reading.planted import MISREAD
from tests.world.waiting import until
from tests.world.worker_harness import CARRIER_ID, push_body

PARCELS = 300


class PlantedService(Service):
    """Roles and commands that know the planted carrier."""

    launcher = "tests.statesvc.reading.launcher"

    async def change_rollout(self, **change: Any) -> None:
        async with self.session.put(
            f"{self.api.url}/v1/rollouts/{CARRIER_ID}", json=change
        ) as answer:
            assert answer.status == 200, await answer.text()

    async def push(self, minutes: range) -> set[str]:
        """Push one scan a minute of each parcel; every third scan is one that the candidate
        misreads.
        """
        queue = [
            push_body(
                {
                    "number": f"N{n}",
                    "status": "in_transit",
                    "code": MISREAD if (n + minute) % 3 == 0 else "OK",
                    "minute": minute,
                }
            )
            for minute in minutes
            for n in range(PARCELS)
        ]
        acknowledged: set[str] = set()

        async def client() -> None:
            while queue:
                status, answer = await self.webhook(CARRIER_ID, queue.pop())
                assert status == 200
                acknowledged.add(answer["message_id"])

        await asyncio.gather(*(client() for _ in range(8)))
        return acknowledged


@asynccontextmanager
async def three_workers(service_maker: ServiceMaker, folder: Path) -> AsyncIterator[PlantedService]:
    async with await service_maker(folder, kind=PlantedService) as service:
        await service.start("api", "worker", "worker", "worker")
        yield service


async def test_hold_then_release_under_load_loses_and_doubles_nothing(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with three_workers(service_maker, tmp_path) as service:
        await service.change_rollout(candidate="same", percent=50, shadow=True)
        pushing = asyncio.create_task(service.push(range(4)))
        for _ in range(3):
            await asyncio.sleep(0.4)
            await service.change_rollout(hold=True, why="load test")
            await asyncio.sleep(0.4)
            await service.change_rollout(hold=False, why="load test")
        acknowledged = await pushing
        await service.drained(90)
        await assert_each_took_effect_once(service, acknowledged)
        by_candidate = await service.rows(
            "SELECT message_id FROM statesvc.event WHERE normalizer = 'acme@same'"
        )
        share = "SELECT m FROM unnest(%s::uuid[]) m WHERE statesvc.in_share(m, %s, 50)"
        assert set(by_candidate) == set(await service.rows(share, sorted(acknowledged), CARRIER_ID))
        async with service.session.get(
            f"{service.api.url}/v1/rollouts/{CARRIER_ID}/diffs"
        ) as answer:
            shown = await answer.json()
        assert shown["items"] == []


async def test_turned_back_under_load_nothing_claimed_later_is_read_by_the_candidate_and_one_command_mends_the_rest(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with three_workers(service_maker, tmp_path) as service:
        await service.command("rollout", "set", CARRIER_ID, "--candidate", "2", "--percent", "50")
        pushing = asyncio.create_task(service.push(range(5)))
        read = "SELECT count(*) >= 50 FROM statesvc.event WHERE normalizer = 'acme@2'"
        await until(lambda: service.value(read))
        await service.change_rollout(percent=0, why="it reads deliveries that are none")
        looked = await service.rows(
            "SELECT statesvc.clock(), ARRAY(SELECT message_id FROM statesvc.inbox WHERE token IS"
            " NOT NULL)"
        )
        acknowledged = await pushing
        await service.drained(90)
        await assert_each_took_effect_once(service, acknowledged)
        # what was claimed before finishes as it began; nothing else is read by the candidate
        ((looked_at, leased),) = looked
        late = await service.rows(
            "SELECT message_id FROM statesvc.event WHERE normalizer = 'acme@2' AND recorded_at"
            " > %s",
            looked_at,
        )
        assert {message_id for (message_id,) in late} <= set(leased)
        received_later = (
            "SELECT count(*) FROM statesvc.event WHERE normalizer = %s AND received_at > %s"
        )
        assert await service.value(received_later, "acme@2", looked_at) == 0
        assert await service.value(received_later, "acme@1", looked_at) > 0, "the load went on"
        misread = "SELECT count(*) FROM statesvc.shipment WHERE status <> 'in_transit'"
        assert await service.value(misread) > 0, "the planted fault has an effect"

        report = json.loads(
            await service.command(
                "renormalize", "--carrier", CARRIER_ID, "--read-by", "2", "--json"
            )
        )
        assert report["corrected"] > 0
        assert await service.value(misread) == 0
        corrected = await service.value(
            "SELECT count(*) FROM statesvc.event WHERE kind = 'correction'"
        )
        assert corrected == report["corrected"]
        assert (
            json.loads(await service.command("renormalize", "--carrier", CARRIER_ID, "--json"))[
                "corrected"
            ]
            == 0
        )
        status, audit = await service.get(f"/v1/shipments/{CARRIER_ID}/N0/audit")
        assert status == 200
        corrections = [event for event in audit["events"] if event["kind"] == "correction"]
        assert {event["corrects"] for event in corrections} <= {
            event["event_id"] for event in audit["events"]
        }
