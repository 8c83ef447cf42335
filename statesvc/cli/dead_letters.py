"""`statesvc dead-letters list | show ID`."""

import argparse
import asyncio
from dataclasses import asdict
from typing import get_args

from events.errors import Cause
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.refusal import CommandError
from statesvc.cli.session import service_connection
from statesvc.dead_letters.listing import DeadLetter, DeadLetterKind, Filter, list_dead_letters, show_dead_letter
from statesvc.settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list | show")
    listing = commands.add_parser("list", help="what waits, the newest first")
    listing.add_argument("--carrier", help="of this carrier only")
    listing.add_argument("--cause", choices=[cause.value for cause in Cause], help="of this cause only")
    listing.add_argument("--kind", choices=get_args(DeadLetterKind), help="of this kind only")
    listing.add_argument("--all", action="store_true", help="also those that a human has settled")
    listing.add_argument("--limit", type=int, default=50, help="at most so many (default %(default)s)")
    listing.add_argument("--json", action="store_true", help="for scripts")
    show = commands.add_parser("show", help="everything about one")
    show.add_argument("id", type=int)
    show.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    return asyncio.run(_list(options) if options.action == "list" else _show(options))


async def _list(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise CommandError("--limit must be 1 or more", exit_code=2)
    wanted = Filter(kind=options.kind, carrier_id=options.carrier, cause=options.cause, is_open=None if options.all else True)
    async with service_connection(load_settings()) as connection:
        letters, more = await list_dead_letters(connection, wanted, limit=options.limit)
    if options.json:
        write_json([asdict(letter) for letter in letters])
        return 0
    if not letters:
        write_line("nothing waits")
        return 0
    write_table(
        ("ID", "SINCE", "CARRIER", "KIND", "CAUSE", "DETAIL"),
        [
            (letter.dead_letter_id, f"{letter.created_at:%Y-%m-%d %H:%M}", letter.carrier_id, letter.kind, letter.cause, about(letter))
            for letter in letters
        ],
    )
    if more is not None:
        write_line(f"... there are more: --limit {options.limit * 4}")
    return 0


def about(letter: DeadLetter) -> str:
    """What a human sees first: the code that is unknown, or the place that could not be read."""
    code = "/".join(part for part in (letter.raw_type, letter.raw_code) if part)
    return ": ".join(part for part in (code, letter.detail) if part)


async def _show(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        found = await show_dead_letter(connection, options.id)
    if found is None:
        raise CommandError(f"there is no dead letter {options.id}")
    letter, statements = found
    fields = asdict(letter) | (asdict(statements) if statements else {})
    if options.json:
        write_json(fields)
    else:
        write_table(("FIELD", "VALUE"), [(name, value) for name, value in fields.items() if value is not None])
    return 0
