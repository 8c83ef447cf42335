"""Services with keys of a program, without add-ons, and traced by a collector."""

from pathlib import Path

import orjson

from statesvc.telemetry.names import METRICS
from tests.acceptance.all_roles import all_roles
from tests.acceptance.processes import Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.statesvc.database.kms.test_root_key import program
from tests.world.collector import Collector, collecting, settings_for
from tests.world.waiting import until


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


SIGNER = "Quentin Maurer-Lindholm"


def _is_told(collector: Collector) -> bool:
    heard = {span.name for _, span in collector.spans}
    awaited = {"statesvc.ingest", "statesvc.append", "statesvc.process", "statesvc.deliver"}
    return bool(collector.notified) and awaited <= heard and len(collector.metrics) >= 10


async def test_one_trace_leads_from_the_webhook_to_the_subscriber(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with collecting() as collector:
        async with await service_maker(tmp_path, settings_for(collector)) as service:
            await service.start("api", "worker", "notifier")
            await _push(service, collector)
            await until(lambda: _is_told(collector))
        ((ingest_role, ingest),) = collector.named("statesvc.ingest")
        ((process_role, process),) = collector.named("statesvc.process")
        ((deliver_role, deliver),) = collector.named("statesvc.deliver")
        assert (ingest_role, process_role, deliver_role) == ("api", "worker", "notifier")
        assert ingest.trace_id == process.trace_id == deliver.trace_id
        assert (process.parent_span_id, deliver.parent_span_id) == (ingest.span_id, process.span_id)
        (appended,) = [span for _, span in collector.named("statesvc.append") if span.links]
        assert [link.span_id for link in appended.links] == [process.span_id]
        assert [heard and heard[:-2] for heard in collector.notified] == [
            f"00-{deliver.trace_id.hex()}-{deliver.span_id.hex()}-"
        ]
        assert collector.metrics <= {metric.name for metric in METRICS}, (
            "names that the table does not have"
        )
        heard = b"".join(collector.bodies)
        assert not [text for text in (NUMBER, SIGNER, *SIGNER.split()) if text.encode() in heard]


async def _push(service: Service, collector: Collector) -> None:
    subscription = orjson.dumps({"url": f"{collector.url}/notify"})
    status, _ = await service.post(
        "/v1/subscriptions", subscription, **{"Content-Type": "application/json"}
    )
    assert status == 201
    message = ups_alert(NUMBER, "D/KB", day=1, minute=1, signer=SIGNER)
    # what a carrier says of its own trace is not believed
    foreign = f"00-{'ab' * 16}-{'cd' * 8}-01"
    status, _ = await service.post("/v1/webhooks/ups", message.body, traceparent=foreign)
    assert status == 200
