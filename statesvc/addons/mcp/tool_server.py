"""Tools made of declared operations: name, texts and schema are those of the API's document.

Reads are a chosen dozen, because an agent reads all of them before its first call. Writes are
offered only where the command allows it; each takes a `why`, and the log names `mcp:<key>`.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from statesvc import __version__
from statesvc.cli.api_calls import Calls, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import operation_named
from statesvc.cli.remote_calls import RemoteCalls
from statesvc.cli.service_profile import Service
from statesvc.http.call import WHY_CHARS_MAX
from statesvc.http.keys.api_keys import AGENT
from statesvc.http.operation import Operation

READS: Final = (
    "list_shipments",
    "get_shipment",
    "get_shipment_history",
    "get_shipment_audit",
    "report_promises",
    "list_late_parcels",
    "get_status",
    "list_notices",
    "list_dead_letter_groups",
    "list_dead_letters",
    "list_subscriptions",
    "list_actions",
)
WRITES: Final = (
    "await_shipment",
    "replay_dead_letters",
    "discard_dead_letters",
    "mark_notice_seen",
    "pause_subscription",
    "resume_subscription",
    "resend_notification",
    "teach_code",
)
_WHY: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": WHY_CHARS_MAX,
    "description": "Why it is done: stands in the log for ever, so nothing personal.",
}


class ToolServer:
    """The tools, and the calls that they make."""

    def __init__(self, calls: Calls, *, allows_write: bool) -> None:
        self._calls = calls
        self._allows_write = allows_write
        self._tools = {name: _tool(name) for name in (*READS, *WRITES)}

    async def run(self) -> None:
        """Serve standard input until it ends."""
        server: Server[Any] = Server(
            "statesvc",
            version=__version__,
            instructions="State of parcels, and of the service that keeps it.",
            on_list_tools=self._list,
            on_call_tool=self._answer,
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async def _list(
        self, _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        offered = (*READS, *WRITES) if self._allows_write else READS
        return ListToolsResult(tools=[self._tools[name] for name in offered])

    async def _answer(
        self, _context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        try:
            answer = await self.call(params.name, dict(params.arguments or {}))
        except CommandError as error:
            # a result, not an error of the protocol: the model reads it and can do better
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[TextContent(text=json.dumps(answer, ensure_ascii=False))])

    async def call(self, name: str, arguments: dict[str, Json]) -> Json:
        """Make the call of a tool. Raises CommandError."""
        if name not in self._tools:
            raise CommandError(f"there is no tool {name}")
        if name in WRITES and not self._allows_write:
            raise CommandError(
                f"{name} changes something, which only `statesvc mcp --allow-write` may do"
            )
        schema, fields = self._tools[name].input_schema, operation_named(name).fields
        if strange := sorted(arguments.keys() - schema["properties"].keys()):
            raise CommandError(f"{name} takes no {', '.join(strange)}")
        required = schema["required"]
        if missing := [each for each in required if not str(arguments.get(each) or "").strip()]:
            raise CommandError(f"{name} needs {', '.join(missing)}")
        # what the SDK logs of an exception would show them
        texts = {"why", *(each for each, field in fields.items() if field.place == "path")}
        if untold := sorted(
            each
            for each in texts & arguments.keys()
            if not isinstance(arguments[each], str) or not arguments[each].isprintable()
        ):
            raise CommandError(f"{name} takes printable text as {', '.join(untold)}")
        is_header = "why" in arguments and "why" not in fields
        why = arguments.pop("why") if is_header else ""
        body = {
            each: value
            for each, value in arguments.items()
            if each in fields and fields[each].place == "body"
        }
        given = {each: value for each, value in arguments.items() if each not in body}
        # in a thread: a service that does not answer holds up neither other calls nor the agent's
        # cancellation
        return await asyncio.to_thread(
            lambda: asyncio.run(self._calls.call(name, body, why=why, **given))
        )


async def serve(service: Service, *, allows_write: bool) -> None:
    await ToolServer(RemoteCalls(service, agent=AGENT), allows_write=allows_write).run()


def _tool(operation_id: str) -> Tool:
    module = import_module(operation_named(operation_id).module)
    operation: Operation[Any] = getattr(module, operation_id)
    models = [
        model.model_json_schema()
        for model in (operation.parameters, operation.request)
        if model is not None
    ]
    # a write without a reason is refused here, also where the call itself would take it
    asked = {} if operation_id in READS else {"why": _WHY}
    schema = {
        "type": "object",
        "properties": _merged(models, "properties") | asked,
        "required": sorted(
            {*asked, *(name for model in models for name in model.get("required", ()))}
        ),
        "additionalProperties": False,
        "$defs": _merged(models, "$defs"),
    }
    return Tool(
        name=operation_id,
        description=f"{operation.summary}. {operation.description}".strip(),
        input_schema=schema,
        annotations=ToolAnnotations(read_only_hint=operation_id in READS),
    )


def _merged(models: Iterable[Mapping[str, Any]], part: str) -> dict[str, Any]:
    return {name: held for model in models for name, held in model.get(part, {}).items()}
