"""The service with its master key in a KMS: a real program wraps, real processes start by it."""

from pathlib import Path

from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.statesvc.database.kms.test_kms import program


async def test_a_webhook_is_sealed_and_read_by_keys_that_a_program_unwraps(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    wrapper = program(tmp_path)
    settings = {"STATESVC_MASTER_KEY": "kms", "STATESVC_KMS_URL": f"command:{wrapper}"}
    async with await service_maker(tmp_path, settings) as service:
        await service.start("api", "worker")
        status, _ = await service.webhook(
            "ups", ups_alert("1ZKMS00000000001", "I/OT", day=3, minute=300).body
        )
        assert status == 200
        await service.drained()
        status, history = await service.get("/v1/shipments/ups/1ZKMS00000000001/history")
        assert (status, len(history["items"])) == (200, 1)
