"""`statesvc carriers show CARRIER`: a carrier by its service and, on its machine, its settings."""

import argparse
import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from statesvc.cli.api_calls import Json
from statesvc.cli.output import cell, write_json, write_line
from statesvc.cli.service_calls import api_calls
from statesvc.cli.service_profile import service_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    shown: dict[str, Json] = {}
    if service_of(options) is None:
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
        "rollout": (
            None if rollout["changed_at"] is None else {name: rollout[name] for name in states}
        ),
        "findings": [
            finding["text"] for finding in status["troubles"] if finding["about"] == carrier_id
        ],
    }
