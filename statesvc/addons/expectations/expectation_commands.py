"""`statesvc expectations`: list the hours after which silence is observed.

`... set CARRIER NAME=HOURS ...` sets them for a carrier, its service, or all. `set` first shows the
effect on waiting shipments; changes need `--yes`.
"""

import argparse
import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

from statesvc.cli.api_calls import Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields, operation_named
from statesvc.cli.output import write_blocks, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.http.views import draw
from statesvc.shipments.rule_hours import NEVER, named_hours, rules_of

_INHERIT: Final = "inherit"
_ALL_CARRIERS: Final = "*"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what")
    state = commands.add_parser(
        "set",
        help=("set the hours of a carrier, a service or all; previews without --yes"),
    )
    add_fields(
        state,
        "get_expectations",
        "carrier_id",
        arguments=["carrier_id"],
        carrier_id="a carrier id, or all",
    )
    state.add_argument(
        "hours",
        nargs="+",
        metavar="NAME=HOURS",
        help=(
            f"such as stalled.in_transit=96, pickup_expiring={NEVER}, overdue={_INHERIT}; what is"
            " not named stays as it was stated"
        ),
    )
    add_fields(state, "get_expectations", "service")
    state.add_argument("--why", default="", help="recorded in the log; needed with --yes")
    state.add_argument(
        "--yes", action="store_true", help="make the change; without it, only show it"
    )
    state.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_list(options) if options.what is None else _state(options))


async def _list(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        items = (await calls.call("list_expectations"))["items"]
    if options.json:
        write_json(items)
        return 0
    effective = [dict(named_hours(item["in_effect"])) for item in items]
    own = [dict(named_hours(item["stated"])) for item in items]
    rows = [
        (name, *(_cell(name, *each) for each in zip(effective, own, strict=True)))
        for name in sorted(effective[0])
    ]
    write_table(["HOURS", *map(_heading, items)], rows)
    write_line("* stated; the others are inherited, at last from the service's defaults")
    return 0


def _heading(item: Mapping[str, Json]) -> str:
    if item["carrier_id"] == _ALL_CARRIERS:
        return "all"
    return (
        f"{item['carrier_id']}: {item['service']}" if item["service"] else str(item["carrier_id"])
    )


def _cell(name: str, effective: Mapping[str, int | str], own: Mapping[str, int | str]) -> str:
    return f"{effective[name]}{'*' if name in own else ''}"


async def _state(options: argparse.Namespace) -> int:
    if options.yes and not options.why.strip():
        raise CommandError("--why is missing: it stands in the log", exit_code=2)
    scope = {"carrier_id": options.carrier_id, "service": options.service}
    async with api_calls(options) as calls:
        present = await calls.call("get_expectations", **scope)
        rules = rules_of(_merged(present, options.hours))
        preview = await calls.call("preview_expectations", {"rules": rules}, **scope)
        changed = None
        if options.yes:
            order = {"rules": rules, "why": options.why, "replaces": preview["replaces"]}
            changed = await calls.call("change_expectations", order, **scope)
    if options.json:
        revision = None if changed is None else changed["revision"]
        write_json({"rules": rules, "revision": revision, "preview": preview})
        return 0
    stated = ", ".join(f"{name}={hours}" for name, hours in named_hours(rules)) or "nothing"
    write_line(f"would be stated: {stated}")
    write_blocks(draw(operation_named("preview_expectations").view, preview))
    if changed is None:
        write_line("nothing was changed; --yes does it")
    else:
        write_blocks(draw(operation_named("change_expectations").view, changed))
    return 0


def _merged(present: Mapping[str, Any], given: Collection[str]) -> dict[str, int | str]:
    names = [name for name, _ in named_hours(present["in_effect"])]
    stated = dict(named_hours(present["stated"]))
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or name not in names:
            raise CommandError(
                f"{each!r} is not NAME=HOURS; the names are {', '.join(names)}", exit_code=2
            )
        if value == _INHERIT:
            stated.pop(name, None)
        else:
            stated[name] = int(value) if value.isascii() and value.isdigit() else value
    return stated
