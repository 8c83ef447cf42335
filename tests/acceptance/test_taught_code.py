"""A code is taught to a running service, by its commands and by its API: pushed, seen,
previewed, mapped, notified.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.acceptance.processes import ROOT, Service
from tests.world.ports import free_port

ServiceMaker = Callable[..., Any]
MAPPINGS = "/v1/carriers/royalmail/mappings"


def royalmail(number: str, code: str) -> bytes:
    event = {
        "eventCode": code,
        "eventName": "Left with Zaphod",
        "eventDateTime": "2026-03-02T10:04:00+00:00",
        "locationName": "Leeds DO",
    }
    return json.dumps({"mailPieces": {"mailPieceId": number, "events": [event]}}).encode()


async def command(service: Service, *arguments: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statesvc", *arguments, "--json"),
        env=service.environment,
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode() + output.decode()
    return json.loads(output)


async def push(service: Service, *numbers: str, code: str = "EVZZ9") -> None:
    for number in numbers:
        assert (await service.webhook("royalmail", royalmail(number, code)))[0] == 200
    await service.drained()


async def state(service: Service, number: str) -> str:
    status, shipment = await service.get(f"/v1/shipments/royalmail/{number}")
    assert status == 200, shipment
    return str(shipment["status"])


async def call(service: Service, path: str, **document: Any) -> Any:
    status, answered = await service.post(
        path, orjson.dumps(document), **{"Content-Type": "application/json"}
    )
    assert status in {200, 201}, answered
    return answered


async def subscribe(service: Service) -> None:
    await call(
        service,
        "/v1/subscriptions",
        url=f"http://127.0.0.1:{free_port()}/",
        statuses=["delivery_attempted"],
    )


@pytest.mark.parametrize("by", ["commands", "API"])
async def test_one_code_end_to_end(service_maker: ServiceMaker, tmp_path: Path, by: str) -> None:
    service: Service = await service_maker(tmp_path)
    async with service:
        await service.start("api", "worker")
        await subscribe(service)
        await push(service, "AB1GB", "AB2GB")
        assert await state(service, "AB1GB") == "unknown"
        await (_by_commands if by == "commands" else _by_api)(service)
        assert [await state(service, number) for number in ("AB1GB", "AB2GB")] == [
            "delivery_attempted"
        ] * 2
        assert await service.value("SELECT count(*) FROM statesvc.notification") == 2
        await push(service, "AB3GB")
        assert await state(service, "AB3GB") == "delivery_attempted"
        assert (await service.get("/v1/unmapped-codes"))[1]["items"] == []
        _, audit = await service.get("/v1/shipments/royalmail/AB1GB/audit")
        assert [event["kind"] for event in audit["events"]] == ["unmapped", "correction"]
        assert audit["events"][1]["normalizer_version"] == "1+m1"
        verbs = await service.rows(
            "SELECT verb FROM statesvc.action WHERE verb IN ('map_code', 'renormalize') ORDER BY"
            " batch_id"
        )
        assert [verb for (verb,) in verbs] == ["map_code", "renormalize"]


async def _by_commands(service: Service) -> None:
    (unknown,) = await command(service, "carriers", "unmapped")
    assert (unknown["raw_code"], unknown["events"]) == ("EVZZ9", 2)
    lesson = ("carriers", "map", "royalmail", "--code", "EVZZ9", "--status", "delivery_attempted")
    preview = await command(service, *lesson)
    assert (preview["events"], preview["replaces"]) == (2, 0)
    assert await service.value("SELECT count(*) FROM statesvc.code_mapping") == 0
    taught = await command(service, *lesson, "--why", "their letter", "--yes")
    done = await command(
        service, "carriers", "renormalize", "royalmail", "1", "--why", "their letter"
    )
    assert (taught["revision"], done["corrected"], done["notifications"]) == (1, 2, 2)


async def _by_api(service: Service) -> None:
    (unknown,) = (await service.get("/v1/unmapped-codes"))[1]["items"]
    assert (unknown["raw_code"], unknown["events"]) == ("EVZZ9", 2)
    lesson = {"raw_code": "EVZZ9", "meaning": {"status": "delivery_attempted"}}
    preview = await call(service, f"{MAPPINGS}/preview", **lesson)
    assert (preview["events"], preview["replaces"]) == (2, 0)
    assert await service.value("SELECT count(*) FROM statesvc.code_mapping") == 0
    taught = await call(
        service, MAPPINGS, **lesson, why="their letter", replaces=preview["replaces"]
    )
    done = await call(service, f"{MAPPINGS}/{taught['revision']}/renormalize", why="their letter")
    assert (done["corrected"], done["notifications"], done["done"], done["obstacle"]) == (
        2,
        2,
        True,
        None,
    )


async def test_two_operators_teach_one_code_at_once_and_workers_push_on(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    # by command and by API, both reading the history again while messages come: every event ends
    # as the latest row says
    service: Service = await service_maker(tmp_path)
    async with service:
        await service.start("api", "worker")
        await push(service, *(f"AB{number}GB" for number in range(10)))
        lesson = ("carriers", "map", "royalmail", "--code", "EVZZ9", "--status")

        async def teach_by_api() -> None:
            await call(
                service, MAPPINGS, raw_code="EVZZ9", meaning={"status": "lost"}, why="one says so"
            )

        pushing = asyncio.create_task(push(service, *(f"CD{number}GB" for number in range(20))))
        outcomes = await asyncio.gather(
            command(service, *lesson, "delivered", "--why", "another says so", "--yes"),
            teach_by_api(),
            return_exceptions=True,
        )
        assert sum(isinstance(each, BaseException) for each in outcomes) <= 1, outcomes
        await pushing
        latest = (await service.get(MAPPINGS))[1]["items"][0]
        done = await call(
            service, f"{MAPPINGS}/{latest['revision']}/renormalize", why="whichever was last"
        )
        assert done["done"]
        found = await service.rows("SELECT status, count(*) FROM statesvc.shipment GROUP BY 1")
        assert found == [(latest["meaning"]["status"], 30)]
