"""`statesvc dead-letters discard (ID... | --carrier C --cause R ...) --why "..."`."""

import argparse
import asyncio

from statesvc.cli.command_error import CommandError
from statesvc.cli.dead_letters.selection import Subcommands, add_selection, order_of
from statesvc.cli.output import write_json_line, write_line
from statesvc.cli.session import service_connection
from statesvc.repair.dead_letters.discard import BATCH, discard
from statesvc.repair.dead_letters.put_back import Order, plan
from statesvc.settings.service_settings import load_settings


def configure(commands: Subcommands) -> None:
    """What the command takes."""
    parser = commands.add_parser("discard", help="give letters up; they are kept and listed as discarded")
    add_selection(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say how many")
    parser.add_argument("--why", required=True, help="stands in the log")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Discards, and answers 1 where nothing was there to discard."""
    if not options.why.strip():
        raise CommandError("--why: say why, for whoever reads the log", exit_code=2)
    return asyncio.run(_run(options, order_of(options)))


async def _run(options: argparse.Namespace, order: Order) -> int:
    async with service_connection(load_settings()) as connection:
        found = await plan(connection, order)
        discarded = 0
        if not options.dry_run:
            while part := await discard(connection, order, up_to=found.up_to):
                discarded += part
                if part < BATCH:
                    break
    if options.json:
        write_json_line({"letters": found.letters, "discarded": discarded, "run": str(order.run_id)})
    elif options.dry_run:
        write_line(f"{found.letters:,} letters would be discarded")
    elif discarded:
        write_line(f"{discarded:,} letters discarded")
    else:
        raise CommandError("no open letter matches")
    return 0 if discarded or options.dry_run else 1
