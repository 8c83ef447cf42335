"""Schemathesis over every call of the document: what it takes is accepted, what it forbids is
refused, what it promises is answered.

All checks are on. An operation may refuse what its schemas allow where its own description says so
(cursors, `x-rules`); that and no more is allowed beyond what schemathesis itself has.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.acceptance.processes import BOOTSTRAP_KEY, ROOT, RoleProcess, Service, running
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.acceptance.test_restore import sealed

NUMBER: Final = "1ZTEST000300000011"
SEED: Final = 7
SETTINGS: Final = {
    "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": None,
    "STATESVC_API_CALLS_PER_KEY_PER_SECOND": "100000",
}
"""Calls are authenticated, and as many as come are taken."""
_ACCEPTED: Final = ("2xx", "3xx", "401", "403", "404", "409", "429", "5xx")
"""Statuses that schemathesis accepts for requests that the schemas allow."""
_REFUSED: Final = (
    "400",
    "401",
    "403",
    "404",
    "405",
    "406",
    "409",
    "415",
    "422",
    "428",
    "429",
    "5xx",
)
"""Statuses that schemathesis accepts for requests that the schemas forbid."""
_TAKES_ANYTHING: Final = ("receive_webhook", "submit_events")
"""Operations that acknowledge what is signed, whatever it holds. (A schema of any JSON would say
so, but clients generated from it fail.)
A line of NDJSON that is no event is answered in its place; an event that was taken
answers 201, never 200.
"""
_NO_DEFECT: Final = ("2xx", "3xx", "4xx")
_GENERAL: Final = f"""
hooks = "tests.acceptance.schemathesis_hooks"
continue-on-failure = true
request-timeout = 30.0
max-stream-events = 1
warnings = false

[auth.openapi.key]
bearer = "{BOOTSTRAP_KEY}"

[checks]
enabled = true

[dictionaries.carriers]
values = ["ups"]

[dictionaries.numbers]
values = ["{NUMBER}"]

[parameters]
"path.carrier_id" = {{dictionary = "carriers", probability = 0.6}}
"path.tracking_number" = {{dictionary = "numbers", probability = 0.6}}
"""


def configuration(document: Mapping[str, Any]) -> str:
    """Return schemathesis' configuration, as TOML: what an operation documents beyond its schemas
    is allowed to it, and to no other.
    """
    calls = [call for calls in document["paths"].values() for call in calls.values()]
    return "\n".join([_GENERAL, *map(_operation, calls)])


def _operation(call: Mapping[str, Any]) -> str:
    responses = call["responses"]
    # an invented cursor, a cursor of a log that was restored, what the sentences of the operation
    # forbid
    refused = [*({"400", "410"} & responses.keys()), *(["422"] if "x-rules" in call else [])]
    # schemathesis itself puts carriers on hold
    held = ["503"] if "`held`" in responses.get("503", {}).get("description", "") else []
    taken = ["200"] if call["operationId"] in _TAKES_ANYTHING else []
    # an endless answer is read for so long
    seconds = (
        "request-timeout = 3.0"
        if "text/event-stream" in responses.get("200", {}).get("content", {})
        else ""
    )
    return f"""
[[operations]]
include-operation-id = "{call["operationId"]}"
{seconds}

[operations.checks]
positive_data_acceptance.expected-statuses = {json.dumps([*_ACCEPTED, *refused])}
negative_data_rejection.expected-statuses = {json.dumps([*_REFUSED, *taken])}
not_a_server_error.expected-statuses = {json.dumps([*_NO_DEFECT, *held])}
"""


async def known(service: Service) -> None:
    """Make a shipment."""
    event = {"carrier_id": "ups", "tracking_number": NUMBER, "status": "in_transit"}
    for day in (1, 2):
        submitted = json.dumps(
            event | {"event_id": f"S-{day}", "occurred_at": f"2026-05-0{day}T10:00:00+02:00"}
        )
        assert (
            await service.post("/v1/events", submitted, **{"Content-Type": "application/json"})
        )[0] == 201


async def lively(service: Service) -> None:
    """Make something of each kind to find: a shipment, a dead letter, an unknown code, a
    subscription.
    """
    await known(service)
    for body in (ups_alert(NUMBER, "I/ZZ9", day=3, minute=600).body, b"{ what no carrier says"):
        assert (await service.webhook("ups", body))[0] == 200
    wish = json.dumps({"url": f"{service.api.url}/livez"})
    assert (await service.post("/v1/subscriptions", wish, **{"Content-Type": "application/json"}))[
        0
    ] == 201
    await service.drained()
    await sealed(service)


async def flaws(server: RoleProcess, folder: Path, *options: str) -> str:
    """Return what schemathesis reports of the document of an API; empty where it finds nothing
    wrong.
    """
    async with aiohttp.request("GET", f"{server.url}/openapi.json") as answer:
        document = await answer.json()
    (folder / "schemathesis.toml").write_text(configuration(document))
    program = (sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()")
    arguments = (
        "--config-file",
        "schemathesis.toml",
        "run",
        f"{server.url}/openapi.json",
        "--seed",
        str(SEED),
        *options,
    )
    process = await asyncio.create_subprocess_exec(
        *program,
        *arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return "" if process.returncode == 0 else output.decode()


async def test_a_few_calls_of_each_operation_keep_the_contract(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with running(await service_maker(tmp_path / "service", SETTINGS), "api") as service:
        await known(service)
        # the stream is read until a time is over
        few = ("--phases", "examples", "--exclude-operation-id", "stream_transitions")
        found = await flaws(service.api, tmp_path, *few)
    assert not found, found


@pytest.mark.soak
async def test_no_call_breaks_its_contract_however_it_is_called(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with running(
        await service_maker(tmp_path / "service", SETTINGS), "api", "worker", "sealer"
    ) as service:
        await lively(service)
        found = await flaws(service.api, tmp_path, "--max-examples", "40")
    assert not found, found
