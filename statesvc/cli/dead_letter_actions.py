"""`statesvc dead-letters replay | discard (ID... | --carrier C --cause R ...)`: what changes dead letters.

A replay prints its plan, starts with a canary, goes on at a rate, shows its progress and stops when errors rise.
"""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from statesvc.cli.api_calls import Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.declared import Subcommands
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import write_json_line, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits

FILTER: Final = ("carrier_id", "cause", "kind", "since", "until")
_LIMITS: Final = ReplayLimits()
_PATIENCE_OF_A_CALL: Final = 8.0
_LIMIT_OF_A_CALL: Final = 500
_LINE_SECONDS: Final = 1.0
_WHY_STOPPED: Final = {
    ReplayEnd.CANARY_FAILED: "stopped: too many of the canary are failing again. The rest is untouched; fix the cause and run it again.",
    ReplayEnd.ERRORS_ROSE: "stopped: too many are failing again. The rest is untouched; run it again to go on.",
    ReplayEnd.NO_VERDICTS: "stopped: nothing that was put back gets a verdict. Is a worker running? What is back in its queue stays there.",
}


def filter_of(options: argparse.Namespace) -> dict[str, Json]:
    return {name: value for name in FILTER if (value := getattr(options, name)) is not None}


def configure_replay(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "replay", help="put dead letters back the way they came, once their cause is fixed"
    )
    parser.add_argument(
        "ids",
        nargs="*",
        type=int,
        metavar="ID",
        help="ids of dead letters; or use the filter options",
    )
    add_fields(parser, "replay_dead_letters", *FILTER, "why")
    parser.add_argument("--dry-run", action="store_true", help="only print the plan")
    parser.add_argument(
        "--json",
        action="store_true",
        help="for scripts: a line for the plan, for progress and for the result",
    )
    add_fields(parser, "replay_dead_letters", "canary", "per_second", "stop_at_percent")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="stop when none gets a verdict (%(default)s)",
    )


def _check(options: argparse.Namespace) -> None:
    """Refuse to act on everything by mistake."""
    if options.ids and filter_of(options):
        raise CommandError("name dead letters by their ids, or by a filter, not both", exit_code=2)
    if not options.ids and not any((options.carrier_id, options.cause, options.kind)):
        raise CommandError("name the dead letters: ids, or --carrier, --cause, --kind", exit_code=2)


async def run_replay(options: argparse.Namespace) -> int:
    """Replay; return 1 where some were refused or the run stopped."""
    _check(options)
    if options.patience <= 0 or (options.per_second is not None and options.per_second <= 0):
        raise CommandError("--rate and --patience must be above 0", exit_code=2)
    async with api_calls(options) as calls:
        return await (_replay_ids if options.ids else _replay)(calls, options)


async def _replay(calls: Calls, options: argparse.Namespace) -> int:
    limits = {
        name: value
        for name in ("canary", "per_second", "stop_at_percent")
        if (value := getattr(options, name)) is not None
    }
    wanted = {**filter_of(options), **limits, "why": options.why or ""}
    plan = await calls.call("replay_dead_letters", {**wanted, "dry_run": True})
    replayable = sum(line["replayable"] for line in plan["plan"])
    _write_plan(plan["plan"], plan["remaining"], as_json=options.json)
    if options.dry_run or not plan["remaining"]:
        return 0
    if not replayable:
        obstacles = {obstacle for line in plan["plan"] for obstacle in line["obstacles"]}
        raise CommandError(
            "nothing was replayed: "
            + "; ".join(SENTENCES[Obstacle(each)] for each in sorted(obstacles))
        )
    order = {
        **wanted,
        "patience_seconds": min(options.patience, _PATIENCE_OF_A_CALL),
        "wait": True,
        "limit": _LIMIT_OF_A_CALL,
    }
    ended = await _to_the_end(
        calls, order, planned=plan["remaining"], patience=options.patience, as_json=options.json
    )
    _write_end(ended, as_json=options.json)
    # what another operator replayed meanwhile is done nevertheless
    return (
        0
        if ended["ended"] == ReplayEnd.DONE and ended["refused"].keys() <= {Obstacle.REPLAYED}
        else 1
    )


async def _to_the_end(
    calls: Calls, order: Mapping[str, Json], *, planned: int, patience: float, as_json: bool
) -> dict[str, Any]:
    """Return what the whole run did. It waits for what it put back, as long as some of that gets a verdict in the time."""
    refused: Counter[str] = Counter()
    written_at = float("-inf")
    verdicts, heard_at = 0, time.monotonic()
    ended: dict[str, Any] = {}
    async with aclosing(
        work(calls, "replay_dead_letters", order, counted="replayed", total=planned)
    ) as parts:
        async for progress, answer in parts:
            refused.update(answer["refused"])
            ended = {**answer, **progress.sums, "planned": planned, "refused": dict(refused)}
            if answer["settled"] + answer["failed"] > verdicts:
                verdicts, heard_at = answer["settled"] + answer["failed"], time.monotonic()
            if as_json and time.monotonic() - written_at >= _LINE_SECONDS:
                written_at = time.monotonic()
                write_json_line({"progress": {**ended, "run": ended["run_id"]}})
            if answer["ended"] == ReplayEnd.NO_VERDICTS and time.monotonic() - heard_at >= patience:
                break
    return ended


async def _replay_ids(calls: Calls, options: argparse.Namespace) -> int:
    letters = [await calls.call("get_dead_letter", id=one) for one in options.ids]
    for letter in letters:
        if letter["resolution"] is not None or letter["obstacle"] is not None:
            why = SENTENCES[Obstacle(letter["resolution"] or letter["obstacle"])]
            raise CommandError(
                f"nothing was replayed: dead letter {letter['dead_letter_id']}: {why}"
            )
    if options.dry_run:
        for letter in letters:
            _say(
                options,
                f"dead letter {letter['dead_letter_id']}: {IN_WORDS[Way(letter['way'])]}",
                {"plan": letter},
            )
        return 0
    for letter in letters:
        one = letter["dead_letter_id"]
        async for progress, answer in work(
            calls,
            "replay_dead_letter",
            {"why": options.why or ""},
            counted="messages read again",
            id=one,
        ):
            if answer["resolved"]:
                _say(
                    options,
                    f"dead letter {one} replayed: {IN_WORDS[Way(answer['way'])]}",
                    {"result": {**answer, **progress.sums}},
                )
    return 0


def _say(options: argparse.Namespace, sentence: str, document: Mapping[str, Json]) -> None:
    if options.json:
        write_json_line(document)
    else:
        write_line(sentence)


def _write_plan(lines: Sequence[Mapping[str, Any]], dead_letters: int, *, as_json: bool) -> None:
    if as_json:
        write_json_line(
            {
                "plan": lines,
                "dead_letters": dead_letters,
                "replayable": sum(line["replayable"] for line in lines),
            }
        )
        return
    if not dead_letters:
        write_line("no open dead letters match")
        return
    write_table(
        ("DEAD LETTERS", "CARRIER", "KIND", "CAUSE", "REPLAY MEANS", "CAN"),
        [
            (
                line["dead_letters"],
                line["carrier_id"],
                line["kind"],
                line["cause"],
                IN_WORDS[Way(line["way"])],
                line["replayable"],
            )
            for line in lines
        ],
    )
    obstacles: Counter[str] = Counter()
    for line in lines:
        obstacles.update(line["obstacles"])
    for obstacle, count in obstacles.most_common():
        write_line(f"{count:,} cannot: {SENTENCES[Obstacle(obstacle)]}")


def _write_end(ended: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_json_line({"result": {**ended, "run": ended["run_id"]}})
        return
    write_line(f"{ended['replayed']:,} of {ended['planned']:,} dead letters replayed")
    if ended["settled"] or ended["failed"] or ended["waiting"]:
        write_line(
            f"{ended['settled']:,} took effect, {ended['failed']:,} failed again, {ended['waiting']:,} still wait"
        )
    if ended["messages"]:
        write_line(
            f"{ended['messages']:,} messages read again: {ended['corrected']:,} events corrected, {ended['added']:,} added"
        )
    for obstacle, count in Counter(ended["refused"]).most_common():
        write_line(f"{count:,} not replayed: {SENTENCES[Obstacle(obstacle)]}")
    if ended["ended"] in _WHY_STOPPED:
        write_line(_WHY_STOPPED[ended["ended"]])
