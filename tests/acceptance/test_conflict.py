"""An id with other facts never changes anything, and never goes unseen."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.stories import canonical

ServiceMaker = Callable[..., Any]
JSON = {"Content-Type": "application/json"}


async def test_a_conflict_is_409_or_an_entry_in_the_audit_and_state_stays(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    async with service:
        await service.start("api", "worker")
        first = canonical("CN1", "e-1", "in_transit", day=2, minute=60).body
        other = canonical("CN1", "e-1", "delivered", day=2, minute=60).body
        assert (await service.post("/v1/events", first, **JSON))[0] == 201
        assert (await service.post("/v1/events", first, **JSON))[0] == 200
        status, problem = await service.post("/v1/events", other, **JSON)
        assert (status, problem["code"]) == (409, "conflict")

        for _ in range(2):
            assert (await service.webhook("canonical", other + b"\n"))[0] == 200
        await service.drained()
        _, shipment = await service.get("/v1/shipments/canonical/CN1")
        assert shipment["status"] == "in_transit"
        _, audit = await service.get("/v1/shipments/canonical/CN1/audit")
        assert len(audit["conflicts"]) == 1
        assert len(audit["events"]) == 1
        assert len(audit["transitions"]) == 1


async def test_many_lines_get_a_verdict_each_and_a_bad_line_stands_alone(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {})
    async with service:
        await service.start("api")
        lines = [
            canonical("CN2", "e-1", "in_transit", day=2, minute=60).body,
            b"not json",
            canonical("CN2", "e-1", "in_transit", day=2, minute=60).body,
            json.dumps({"carrier_id": "canonical"}).encode(),
            canonical("CN2", "e-2", "delivered", day=3, minute=60).body,
        ]
        status, answer = await service.post(
            "/v1/events", b"\n".join(lines), **{"Content-Type": "application/x-ndjson"}
        )
        assert status == 200
        assert [item["verdict"] for item in answer["results"]] == [
            "appended",
            "invalid",
            "duplicate",
            "invalid",
            "appended",
        ]
        assert [item["line"] for item in answer["results"]] == [1, 2, 3, 4, 5]
        _, shipment = await service.get("/v1/shipments/canonical/CN2")
        assert shipment["status"] == "delivered"
