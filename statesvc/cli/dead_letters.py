"""`statesvc dead-letters list | groups | show ID | replay | discard`: what gave up and waits for a human."""

import argparse
import asyncio
from datetime import datetime
from typing import Final

from statesvc.cli.command_error import CommandError
from statesvc.cli.dead_letter_actions import add_filter, configure_actions, filter_of, run_discard, run_replay
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, DeadLetter
from statesvc.repair.dead_letters.listing import DeadLetterDetails, describe_dead_letter, group_dead_letters, list_dead_letters
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list | groups | show | replay | discard")
    listing = commands.add_parser("list", help="what waits, the newest first")
    add_filter(listing)
    listing.add_argument("--all", action="store_true", help="also resolved ones")
    listing.add_argument("--limit", type=int, default=50, help="at most N (default %(default)s)")
    groups = commands.add_parser("groups", help="what waits, by what went wrong")
    add_filter(groups)
    show = commands.add_parser("show", help="show one with all its attempts")
    show.add_argument("id", type=int)
    for command in (listing, groups, show):
        command.add_argument("--json", action="store_true", help="for scripts")
    configure_actions(commands)


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    return _ACTIONS[options.action](options)


def run_list(options: argparse.Namespace) -> int:
    """A page."""
    if options.limit < 1:
        raise CommandError("--limit must be 1 or more", exit_code=2)
    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> int:
    wanted = filter_of(options, is_open=None if options.all else True)
    async with service_connection(load_settings()) as connection:
        found, more = await list_dead_letters(connection, wanted, limit=options.limit)
    if options.json:
        write_json([each.model_dump(mode="json") for each in found])
        return 0
    if not found:
        write_line("nothing waits")
        return 0
    write_table(
        ("ID", "SINCE", "CARRIER", "KIND", "CAUSE", "DETAIL"),
        [(each.dead_letter_id, _minute(each.created_at), each.carrier_id, each.kind, each.cause, about(each)) for each in found],
    )
    if more is not None:
        write_line(f"... there are more: --limit {options.limit * 4}")
    return 0


def run_groups(options: argparse.Namespace) -> int:
    """The open ones by what went wrong."""
    return asyncio.run(_groups(options))


async def _groups(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        found = await group_dead_letters(connection, filter_of(options))
    if options.json:
        write_json(found.model_dump(mode="json"))
        return 0
    if not found.items:
        write_line("nothing waits")
        return 0
    write_table(
        ("DEAD LETTERS", "CARRIER", "KIND", "CAUSE", "SINCE", "LATEST", "FOR EXAMPLE", "MOSTLY"),
        [
            (
                *(group.dead_letters, group.carrier_id, group.kind, group.cause, _minute(group.oldest_at), _minute(group.newest_at)),
                group.dead_letter_ids[0],
                "; ".join(f"{each.dead_letters} x {each.detail or '(no detail)'}" for each in group.details[:2]),
            )
            for group in found.items
        ],
    )
    if found.counts_capped:
        write_line("... there are more dead letters than were counted")
    return 0


def about(dead_letter: DeadLetter) -> str:
    """What a human sees first: the code that is unknown, or the place that could not be read."""
    code = "/".join(part for part in (dead_letter.raw_type, dead_letter.raw_code) if part)
    return ": ".join(part for part in (code, dead_letter.detail) if part)


def run_show(options: argparse.Namespace) -> int:
    """One."""
    return asyncio.run(_show(options))


async def _show(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        details = await describe_dead_letter(connection, options.id)
    if details is None:
        raise CommandError(f"there is no dead letter {options.id}")
    if options.json:
        write_json(details.model_dump(mode="json"))
    else:
        _write(details)
    return 0


def _write(details: DeadLetterDetails) -> None:
    shown = {name: getattr(details, name) for name in DeadLetter.model_fields}
    shown |= dict(details.occurrences) if details.occurrences is not None else {}
    rows = [
        (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in shown.items()
        if value not in (None, "", [])
    ]
    if details.became is not None:
        rows.append(("became", details.became))
    rows.append(("replay", SENTENCES[details.obstacle] if details.obstacle else IN_WORDS[details.way]))
    write_table(("FIELD", "VALUE"), rows)
    if details.attempts_made:
        write_line("")
        write_table(
            ("ATTEMPT", "WORKER", "STARTED", "ENDED", "OUTCOME", "ERROR", "NORMALIZER"),
            [
                (each.number, each.worker, _second(each.started_at), _second(each.ended_at), each.outcome, each.error, each.normalizer)
                for each in details.attempts_made
            ],
        )
    if details.related:
        write_line("")
        write_table(
            ("OTHER DEAD LETTER", "SINCE", "CAUSE", "DETAIL", "RESOLUTION", "BY", "WHY"),
            [
                (each.dead_letter_id, _minute(each.created_at), each.cause, each.detail, each.resolution, each.resolved_by, each.why)
                for each in details.related
            ],
        )


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _second(at: datetime | None) -> str | None:
    return at.isoformat(" ", "seconds") if at else None


_ACTIONS: Final = {"list": run_list, "groups": run_groups, "show": run_show, "replay": run_replay, "discard": run_discard}
