"""`statesvc workers`: the running processes, when each was last seen, and what they hold."""

import argparse
import asyncio
from typing import Final

from statesvc.cli.output import time_of, write_json, write_line, write_table
from statesvc.cli.presentation import Painted
from statesvc.cli.service_calls import api_calls
from statesvc.telemetry.colour import Colour

_COLOURS: Final = {"alive": Colour.GREEN, "stopping": Colour.YELLOW, "silent": Colour.RED}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        found = await calls.call("list_workers")
    if options.json:
        write_json({"workers": found["items"], "rescues_last_hour": found["rescues_last_hour"]})
        return 0
    write_table(
        (
            "ROLE",
            "HOST",
            "PID",
            "STATE",
            "SEEN",
            "STARTED",
            "LEASES",
            "LOST A DAY",
            "VERSION",
            "WORKER",
        ),
        [
            (
                worker["role"],
                worker["host"],
                worker["pid"],
                Painted(worker["state"], _COLOURS.get(worker["state"])),
                None
                if worker["seen_seconds_ago"] is None
                else f"{worker['seen_seconds_ago']:.0f} s ago",
                time_of(worker["started_at"]),
                worker["leases"],
                worker["leases_lost"],
                worker["version"],
                worker["worker_id"],
            )
            for worker in found["items"]
        ],
        # a worker in another language is known by its id alone
        wide=()
        if any(worker["role"] is None for worker in found["items"])
        else ("VERSION", "WORKER"),
    )
    write_line(
        f"messages taken over from a worker whose lease had ended, in the last hour: {found['rescues_last_hour']}"
    )
    return 0
