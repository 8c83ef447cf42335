"""`statesvc queue`: what waits: messages by carrier, and notifications."""

import argparse
import asyncio

from statesvc.api.service_status import duration
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.inbox.queue_depths import COUNT_MAX, QueueDepths, read_depths
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints it."""
    depths = asyncio.run(_read())
    if options.json:
        write_json(depths)
        return 0
    write_table(
        ("CARRIER", "READY", "OLDEST", "IN WORK", "LATER", "HELD", "HELD SINCE"),
        [
            (
                carrier_id,
                lane["ready"],
                None if lane["oldest_ready_seconds"] is None else duration(lane["oldest_ready_seconds"]),
                lane["leased"],
                lane["scheduled"],
                lane["held"],
                None if lane["oldest_held_seconds"] is None else duration(lane["oldest_held_seconds"]),
            )
            for carrier_id, lane in sorted(depths["carriers"].items())
        ],
    )
    outbox = depths["outbox"]
    write_line(f"outbox: {outbox['ready']:,} ready, {outbox['leased']:,} on their way, {outbox['scheduled']:,} to be tried later")
    write_line(f"dead letters: {depths['dead_letters']:,}")
    if depths["counts_capped"]:
        write_line(f"a count of {COUNT_MAX:,} means: at least that many")
    return 0


async def _read() -> QueueDepths:
    async with service_connection(load_settings()) as connection:
        return await read_depths(connection)
