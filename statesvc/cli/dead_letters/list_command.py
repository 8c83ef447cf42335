"""`statesvc dead-letters list | groups | show ID`."""

import argparse
import asyncio
from dataclasses import asdict
from datetime import datetime

from statesvc.cli.command_error import CommandError
from statesvc.cli.dead_letters.selection import Subcommands, add_filter, filter_of
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, DeadLetter, way_of
from statesvc.repair.dead_letters.groups import group_dead_letters
from statesvc.repair.dead_letters.listing import Statements, list_dead_letters, show_dead_letter
from statesvc.repair.dead_letters.lives import History, history_of
from statesvc.repair.dead_letters.obstacle import SENTENCES
from statesvc.settings.service_settings import load_settings


def configure(commands: Subcommands) -> None:
    """What the commands take."""
    listing = commands.add_parser("list", help="what waits, the newest first")
    add_filter(listing)
    listing.add_argument("--all", action="store_true", help="also those that a human has settled")
    listing.add_argument("--limit", type=int, default=50, help="at most so many (default %(default)s)")
    groups = commands.add_parser("groups", help="what waits, by what went wrong")
    add_filter(groups)
    show = commands.add_parser("show", help="everything about one")
    show.add_argument("id", type=int)
    for command in (listing, groups, show):
        command.add_argument("--json", action="store_true", help="for scripts")


def run_list(options: argparse.Namespace) -> int:
    """A page."""
    if options.limit < 1:
        raise CommandError("--limit must be 1 or more", exit_code=2)
    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> int:
    wanted = filter_of(options, is_open=None if options.all else True)
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
            (letter.dead_letter_id, _minute(letter.created_at), letter.carrier_id, letter.kind, letter.cause, about(letter))
            for letter in letters
        ],
    )
    if more is not None:
        write_line(f"... there are more: --limit {options.limit * 4}")
    return 0


def run_groups(options: argparse.Namespace) -> int:
    """The open ones by what went wrong."""
    return asyncio.run(_groups(options))


async def _groups(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        groups, capped = await group_dead_letters(connection, filter_of(options))
    if options.json:
        write_json({"items": [{**asdict(group), "way": way_of(group.kind, group.cause)} for group in groups], "counts_capped": capped})
        return 0
    if not groups:
        write_line("nothing waits")
        return 0
    write_table(
        ("LETTERS", "CARRIER", "KIND", "CAUSE", "SINCE", "LATEST", "FOR EXAMPLE", "MOSTLY"),
        [
            (
                *(group.letters, group.carrier_id, group.kind, group.cause, _minute(group.oldest_at), _minute(group.newest_at)),
                group.dead_letter_ids[0],
                "; ".join(f"{each['letters']} x {each['detail'] or '(no detail)'}" for each in group.details[:2]),
            )
            for group in groups
        ],
    )
    if capped:
        write_line("... there are more letters than were counted")
    return 0


def about(letter: DeadLetter) -> str:
    """What a human sees first: the code that is unknown, or the place that could not be read."""
    code = "/".join(part for part in (letter.raw_type, letter.raw_code) if part)
    return ": ".join(part for part in (code, letter.detail) if part)


def run_show(options: argparse.Namespace) -> int:
    """One."""
    return asyncio.run(_show(options))


async def _show(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        found = await show_dead_letter(connection, options.id)
        if found is None:
            raise CommandError(f"there is no dead letter {options.id}")
        letter, statements = found
        history = await history_of(connection, letter)
    if options.json:
        known = asdict(history)
        said = asdict(statements) if statements else {}
        write_json({**asdict(letter), **said, "way": letter.way, "attempts_made": known.pop("attempts"), **known})
    else:
        _write(letter, statements, history)
    return 0


def _write(letter: DeadLetter, statements: Statements | None, history: History) -> None:
    fields = asdict(letter) | (asdict(statements) if statements else {})
    rows = [
        (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in fields.items()
        if value not in (None, "", [])
    ]
    if history.became is not None:
        rows.append(("became", history.became))
    rows.append(("replay", SENTENCES[history.obstacle] if history.obstacle else IN_WORDS[letter.way]))
    write_table(("FIELD", "VALUE"), rows)
    if history.attempts:
        write_line("")
        write_table(
            ("ATTEMPT", "WORKER", "STARTED", "ENDED", "OUTCOME", "ERROR", "NORMALIZER"),
            [
                (each.number, each.worker, _second(each.started_at), _second(each.ended_at), each.outcome, each.error, each.normalizer)
                for each in history.attempts
            ],
        )
    if history.other_lives:
        write_line("")
        write_table(
            ("OTHER LETTER", "SINCE", "CAUSE", "DETAIL", "RESOLUTION", "BY", "WHY"),
            [
                (each.dead_letter_id, _minute(each.created_at), each.cause, each.detail, each.resolution, each.resolved_by, each.why)
                for each in history.other_lives
            ],
        )


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _second(at: datetime | None) -> str | None:
    return at.isoformat(" ", "seconds") if at else None


ACTIONS = {"list": run_list, "groups": run_groups, "show": run_show}
