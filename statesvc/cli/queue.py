"""`statesvc queue`: the backlog: messages by carrier, and notifications."""

import argparse
import asyncio

from statesvc.background.duration import duration
from statesvc.cli.api_calls import Json
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    depths = asyncio.run(_read(options))
    if options.json:
        write_json(depths)
        return 0
    write_table(
        ("CARRIER", "READY", "OLDEST", "IN WORK", "LATER", "HELD", "HELD SINCE"),
        [
            (
                carrier_id,
                lane["ready"],
                None
                if lane["oldest_ready_seconds"] is None
                else duration(lane["oldest_ready_seconds"]),
                lane["leased"],
                lane["scheduled"],
                lane["held"],
                None
                if lane["oldest_held_seconds"] is None
                else duration(lane["oldest_held_seconds"]),
            )
            for carrier_id, lane in sorted(depths["carriers"].items())
        ],
    )
    outbox = depths["outbox"]
    write_line(
        f"outbox: {outbox['ready']:,} ready, {outbox['leased']:,} on their way, {outbox['scheduled']:,} to be tried later"
    )
    write_line(f"dead letters: {depths['dead_letters']:,}")
    if depths["counts_capped"]:
        write_line("the largest counts mean: at least that many")
    return 0


async def _read(options: argparse.Namespace) -> Json:
    async with api_calls(options) as calls:
        return await calls.call("get_queue")
