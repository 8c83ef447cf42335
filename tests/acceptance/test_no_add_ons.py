"""The service with every add-on switched off."""

from pathlib import Path

from tests.acceptance.all_roles import all_roles
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.world.waiting import until

NUMBER = "1ZALONE000000001"


async def test_without_add_ons_a_push_is_read_answered_and_notified(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {"STATESVC_ADDONS": ""})
    async with all_roles(service) as (_, subscriber):
        pushed = ups_alert(NUMBER, "I/OT", day=3, minute=300)
        assert (await service.webhook("ups", pushed.body))[0] == 200
        await until(lambda: subscriber.received, 60)
        _, shipment = await service.get(f"/v1/shipments/ups/{NUMBER}")
        assert shipment["status"] == "out_for_delivery"
        status, problem = await service.get("/console")
        assert (status, problem["code"]) == (503, "addon_missing")
        _, told, _ = await service.run("doctor")
        assert "differs" not in told
