"""The service behind PgBouncer in transaction mode; STATESVC_TEST_PGBOUNCER=1 runs every
acceptance test that way.
"""

from pathlib import Path

from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.test_crash import assert_each_took_effect_once, push


async def test_each_message_takes_effect_once_behind_a_pooler(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, behind_pooler=True)
    async with service:
        await service.start("api", "worker", "worker", "notifier")
        acknowledged = await push(service, 300)
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)
        status, listed = await service.get("/v1/shipments", limit="5")
        assert status == 200
        shipment = listed["items"][0]
        status, _ = await service.get(
            f"/v1/shipments/{shipment['carrier_id']}/{shipment['tracking_number']}/audit"
        )
        assert status == 200
        for role in service.roles:
            assert '"level":"error"' not in role.log.read_text()
