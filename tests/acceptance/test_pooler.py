"""The service behind PgBouncer in transaction mode; STATESVC_TEST_PGBOUNCER=1 runs every acceptance test that way."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Service
from tests.acceptance.stories import ups_alert
from tests.acceptance.test_crash import assert_each_took_effect_once, push

ServiceMaker = Callable[..., Any]


async def test_each_message_takes_effect_once_behind_a_pooler(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service = await service_maker(tmp_path, behind_pooler=True)
    async with service:
        await service.start("api", "worker", "worker", "notifier")
        acknowledged = await push(service, 300)
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)
        status, listed = await service.get("/v1/shipments", limit="5")
        assert status == 200
        shipment = listed["items"][0]
        status, _ = await service.get(f"/v1/shipments/{shipment['carrier_id']}/{shipment['tracking_number']}/audit")
        assert status == 200
        for role in service.roles:
            assert '"level":"error"' not in role.log.read_text()


async def test_the_log_names_the_cause_when_a_prepared_statement_does_not_exist(service_maker: ServiceMaker, tmp_path: Path) -> None:
    wrong = {"STATESVC_PREPARED_STATEMENTS": "true"}
    service: Service = await service_maker(tmp_path, wrong, behind_pooler=True)
    async with service:
        await service.start("api")
        told = ""
        async with asyncio.timeout(20):
            while "STATESVC_PREPARED_STATEMENTS=false" not in told:
                statuses = await asyncio.gather(*(_push_one(service, place) for place in range(200)))
                assert set(statuses) <= {200, 503}, "what is not stored is not acknowledged"
                told = service.api.log.read_text()
        assert '"failure":"misrouted"' in told


async def _push_one(service: Service, place: int) -> int:
    status, _ = await service.webhook("ups", ups_alert(f"1ZPOOL{place:010d}", "I/OT", day=3, minute=300).body)
    return status
