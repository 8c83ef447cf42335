"""`statesvc carriers [list | show CARRIER]`: carriers by this release and these settings.

`... draft` is in `carrier_draft`; the others are declared with their operations.
"""

import argparse
import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from statesvc.cli import declared
from statesvc.cli.api_calls import Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import cell, write_json, write_line
from statesvc.cli.service_calls import api_calls, calls_afar


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what")
    commands.add_parser(
        "list", help="this release's carriers, as these settings have them"
    ).add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    show = commands.add_parser(
        "show",
        help="one carrier: how it is authenticated, read and limited, what it pushed, what waits",
    )
    show.add_argument("carrier", help="a carrier id")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    draft = commands.add_parser(
        "draft", help="write a package that reads a carrier's samples, for you to correct"
    )
    draft.add_argument("carrier", help="the id that it is to have")
    draft.add_argument("samples", metavar="FILE", nargs="+", type=Path, help="a body as pushed")
    draft.add_argument(
        "--into", type=Path, help="a folder that is not there (default: CARRIER-statesvc)"
    )
    declared.add_declared(commands, "carriers")


def run(options: argparse.Namespace) -> int:
    if hasattr(options, "declared"):
        return declared.run(options)
    if options.what == "draft":
        from statesvc.cli.carrier_draft import run_draft  # noqa: PLC0415 - loads all tables

        return run_draft(options)
    if options.what == "show":
        return asyncio.run(_show(options))
    if calls_afar(options):
        raise CommandError(
            "the list of carriers is that of the machine's own release and settings: it calls no service",
            exit_code=2,
        )
    from statesvc.cli.carrier_list import write_carriers  # noqa: PLC0415 - loads them all

    write_carriers(as_json=options.json)
    return 0


async def _show(options: argparse.Namespace) -> int:
    """Show the answers of the calls, and on the service's own machine its settings."""
    shown: dict[str, Json] = {}
    if not calls_afar(options):
        from statesvc.cli.carrier_list import described_carrier  # noqa: PLC0415 - loads them all

        shown = await described_carrier(options.carrier)
    async with api_calls(options) as calls:
        # refuses what is no carrier, where the machine of this command knows none
        rollout = await calls.call("get_rollout", carrier_id=options.carrier)
        shown |= _in_operation(options.carrier, await calls.call("get_status"), rollout)
    if options.json:
        write_json(shown)
        return 0
    for name, value in shown.items():
        if value not in (None, "", [], {}):
            write_line(f"{name.replace('_', ' '):<18}{cell(value)}")
    return 0


def _in_operation(
    carrier_id: str, status: Mapping[str, Json], rollout: Mapping[str, Json]
) -> dict[str, Json]:
    """Return its pushes, backlog, readers and faults."""
    last = status["last_pushes"].get(carrier_id)
    states = ("hold", "stable", "candidate", "percent", "shadow", "changed_at", "changed_by", "why")
    return {
        "last_push": None if last is None else datetime.fromtimestamp(last, UTC).isoformat(),
        "pushed_in_an_hour": status["pushes_last_hour"].get(carrier_id),
        "queue": status["queue"]["carriers"].get(carrier_id),
        "rollout": None
        if rollout["changed_at"] is None
        else {name: rollout[name] for name in states},
        "findings": [
            finding["text"] for finding in status["troubles"] if finding["about"] == carrier_id
        ],
    }
