"""An agent's tools, called by the client of the protocol's SDK over standard input and output."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from statesvc.addons.mcp.tool_server import READS, WRITES, ToolServer
from statesvc.cli.api_calls import Calls, File
from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.acceptance.stories import ups_alert

if TYPE_CHECKING:
    from mcp import Client

NUMBER = "1ZMCP00000000001"
PARCEL = {"carrier_id": "ups", "tracking_number": NUMBER}
ARGUMENTS = {name: PARCEL for name in READS if name.startswith("get_shipment")} | {
    "report_promises": {"since": "2026-01-01", "until": "2026-02-01"},
    "list_late_parcels": {"since": "2026-01-01", "until": "2026-02-01"},
}
AWAIT = {**PARCEL, "hours": 2}


def agent(service: Service, key: str, *options: str) -> "Client":
    # half a second that each process of a test run would spend
    from mcp import Client, StdioServerParameters  # noqa: PLC0415

    return Client(
        StdioServerParameters(
            command=sys.executable,
            args=["-m", "statesvc", "mcp", "--url", service.api.url, *options],
            env={"STATESVC_API_KEY": key, "PYTHONPATH": ":".join(sys.path)},
        )
    )


async def told(client: "Client", name: str, **arguments: Any) -> tuple[bool, Any]:
    """Return whether a call was refused, and the text of its answer."""
    result = await client.call_tool(name, arguments)
    (answer,) = result.content
    assert answer.type == "text"
    return bool(result.is_error), answer.text


async def test_an_agent_reads_all_and_writes_only_where_it_may_and_says_why(
    service_maker: Any, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path) as service, AsyncExitStack() as stack:
        await service.start("api", "worker", "sealer")
        await service.webhook("ups", ups_alert(NUMBER, "I/AR", day=9, minute=600).body)
        await service.drained()
        reader = await stack.enter_async_context(agent(service, BOOTSTRAP_KEY))
        tools = (await reader.list_tools()).tools
        assert [tool.name for tool in tools] == list(READS)
        assert all(tool.description for tool in tools)
        for name in READS:
            refused, text = await told(reader, name, **ARGUMENTS.get(name, {}))
            assert not refused, (name, text)
            assert isinstance(json.loads(text), dict)
        shipment = json.loads((await told(reader, "get_shipment", **PARCEL))[1])
        assert shipment["status"] == "in_transit"
        assert await told(reader, "await_shipment", **AWAIT, why="a test") == (
            True,
            "await_shipment changes something, which only `statesvc mcp --allow-write` may do",
        )
        assert await told(reader, "get_shipment", carrier_id="ups") == (
            True,
            "get_shipment needs tracking_number",
        )
        assert await told(reader, "drop_tables") == (True, "there is no tool drop_tables")
        assert await told(reader, "get_status", accept="text/html", self=1) == (
            True,
            "get_status takes no accept, self",
        )
        for number in (["x"], {"a": 1}, "1Z\r\n"):
            assert await told(reader, "get_shipment", carrier_id="ups", tracking_number=number) == (
                True,
                "get_shipment takes printable text as tracking_number",
            )

        status, made = await service.post(
            "/v1/keys",
            json.dumps({"name": "agent", "scopes": ["ingest"]}),
            **{"Content-Type": "application/json"},
        )
        assert status == 201, made
        lacking = await stack.enter_async_context(agent(service, made["key"], "--allow-write"))
        assert {tool.name for tool in (await lacking.list_tools()).tools} == {*READS, *WRITES}
        refused, text = await told(lacking, "get_shipment", **PARCEL)
        assert refused
        assert "takes a key with scope `read`" in text

        writer = await stack.enter_async_context(agent(service, BOOTSTRAP_KEY, "--allow-write"))
        assert await told(writer, "await_shipment", **AWAIT, why=" ") == (
            True,
            "await_shipment needs why",
        )
        for why in (5, "asked\r\nX-Other: 1"):
            assert await told(writer, "await_shipment", **AWAIT, why=why) == (
                True,
                "await_shipment takes printable text as why",
            )
        refused, text = await told(writer, "await_shipment", **AWAIT, why="asked by a customer")
        assert not refused, text
        _, text = await told(reader, "list_actions", verb="await_shipment")
        (action,) = json.loads(text)["items"]
        assert action["actor"] == "mcp:bootstrap"
        assert action["details"]["why"] == "asked by a customer"


class SilentCalls(Calls):
    """Calls of a service that does not answer before `answer` is set."""

    def __init__(self) -> None:
        self.named = {"service": "http://silent.example"}
        self.asked, self.answer = Event(), Event()

    async def fetch(self, *_: object, **__: object) -> File:
        self.asked.set()
        self.answer.wait(60)
        return File(b"{}", {})


async def test_a_service_that_does_not_answer_holds_up_no_other_call() -> None:
    calls = SilentCalls()
    server = ToolServer(calls, allows_write=False)
    waiting = asyncio.create_task(server.call("get_status", {}))
    assert await asyncio.to_thread(calls.asked.wait, 60)
    assert not waiting.done()
    calls.answer.set()
    assert await waiting == {}
