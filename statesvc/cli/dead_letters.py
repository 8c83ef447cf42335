"""`statesvc dead-letters list | groups | show ID | replay | discard`: what gave up and waits for a human."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any, Final

from statesvc.cli.dead_letter_actions import (
    FILTER,
    configure_actions,
    filter_of,
    run_discard,
    run_replay,
)
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import cell, time_of, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, DeadLetter, Obstacle, Way


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    listing = commands.add_parser("list", help="what waits, the newest first")
    add_fields(listing, "list_dead_letters", *FILTER)
    listing.add_argument("--all", action="store_true", help="also resolved ones")
    listing.add_argument("--limit", type=int, default=50, help="at most N (default %(default)s)")
    groups = commands.add_parser("groups", help="what waits, by what went wrong")
    add_fields(groups, "list_dead_letter_groups", *FILTER)
    show = commands.add_parser("show", help="show one with all its attempts")
    add_fields(show, "get_dead_letter", "id", arguments=["id"])
    for command in (listing, groups, show):
        command.add_argument("--json", action="store_true", help="for scripts")
    configure_actions(commands)


def run(options: argparse.Namespace) -> int:
    actions = {
        "list": _list,
        "groups": _groups,
        "show": _show,
        "replay": run_replay,
        "discard": run_discard,
    }
    return asyncio.run(actions[options.action](options))


async def _list(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        page = await calls.call(
            "list_dead_letters",
            **filter_of(options),
            open=None if options.all else True,
            limit=options.limit,
        )
    if options.json:
        write_json(page["items"])
        return 0
    if not page["items"]:
        write_line("nothing waits")
        return 0
    write_table(
        ("ID", "SINCE", "CARRIER", "KIND", "CAUSE", "DETAIL"),
        [
            (
                letter["dead_letter_id"],
                time_of(letter["created_at"]),
                letter["carrier_id"],
                letter["kind"],
                letter["cause"],
                about(letter),
            )
            for letter in page["items"]
        ],
    )
    if page["next_cursor"] is not None:
        write_line(f"... there are more: --limit {options.limit * 4}")
    return 0


async def _groups(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        found = await calls.call("list_dead_letter_groups", **filter_of(options))
    if options.json:
        write_json(found)
        return 0
    if not found["items"]:
        write_line("nothing waits")
        return 0
    write_table(
        ("DEAD LETTERS", "CARRIER", "KIND", "CAUSE", "SINCE", "LATEST", "FOR EXAMPLE", "MOSTLY"),
        [
            (
                *(group[name] for name in ("dead_letters", "carrier_id", "kind", "cause")),
                *(time_of(group["oldest_at"]), time_of(group["newest_at"])),
                group["dead_letter_ids"][0],
                "; ".join(
                    f"{detail['dead_letters']} x {detail['detail'] or '(no detail)'}"
                    for detail in group["details"][:2]
                ),
            )
            for group in found["items"]
        ],
    )
    if found["counts_capped"]:
        write_line("... there are more dead letters than were counted")
    return 0


def about(dead_letter: Mapping[str, Any]) -> str:
    """Return what a human sees first: the code that is unknown, or the position that could not be read."""
    code = "/".join(part for part in (dead_letter["raw_type"], dead_letter["raw_code"]) if part)
    return ": ".join(part for part in (code, dead_letter["detail"]) if part)


async def _show(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        details = await calls.call("get_dead_letter", id=options.id)
    if options.json:
        write_json(details)
    else:
        _write(details)
    return 0


_ATTEMPTS: Final = ("number", "worker", "started_at", "ended_at", "outcome", "error", "normalizer")
_RELATED: Final = (
    "dead_letter_id",
    "created_at",
    "cause",
    "detail",
    "resolution",
    "resolved_by",
    "why",
)


def _write(details: Mapping[str, Any]) -> None:
    shown = {name: details[name] for name in DeadLetter.model_fields} | (
        details["occurrences"] or {}
    )
    rows = [
        (name.replace("_", " "), cell(value))
        for name, value in shown.items()
        if value not in (None, "", [])
    ]
    if details["became"] is not None:
        rows.append(("became", details["became"]))
    obstacle, way = details["obstacle"], details["way"]
    rows.append(("replay", SENTENCES[Obstacle(obstacle)] if obstacle else IN_WORDS[Way(way)]))
    write_table(("FIELD", "VALUE"), rows)
    if details["attempts_made"]:
        write_line("")
        write_table(
            ("ATTEMPT", "WORKER", "STARTED", "ENDED", "OUTCOME", "ERROR", "NORMALIZER"),
            [
                [time_of(one[name]) if name.endswith("_at") else one[name] for name in _ATTEMPTS]
                for one in details["attempts_made"]
            ],
        )
    if details["related"]:
        write_line("")
        write_table(
            ("OTHER DEAD LETTER", "SINCE", "CAUSE", "DETAIL", "RESOLUTION", "BY", "WHY"),
            [
                [time_of(one[name]) if name.endswith("_at") else one[name] for name in _RELATED]
                for one in details["related"]
            ],
        )
