"""`statesvc dead-letters replay (ID... | --carrier C --cause R ...)`: plan, canary, rate, progress; stops when errors rise."""

import argparse
import asyncio
import os
import socket
import time
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.cli.command_error import CommandError
from statesvc.cli.dead_letters.selection import Subcommands, add_selection, order_of
from statesvc.cli.output import end_progress, show_progress, write_json_line, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.queries import queries
from statesvc.log.archive.folder import archive_folder
from statesvc.repair.dead_letters.dead_letter import IN_WORDS
from statesvc.repair.dead_letters.listing import show_dead_letter
from statesvc.repair.dead_letters.obstacle import SENTENCES, Obstacle
from statesvc.repair.dead_letters.put_back import Connection, Order, plan
from statesvc.repair.dead_letters.replay_pace import Bounds, Ended
from statesvc.repair.dead_letters.replay_plan import Plan
from statesvc.repair.dead_letters.replay_run import Run, Tally
from statesvc.repair.dead_letters.rereader import Rereader
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings

_WAKEUP = queries("statesvc.database.wakeups", "wakeup")
_DEFAULT = Bounds()
_LINE_SECONDS: Final = 1.0
_WHY_STOPPED: Final = {
    Ended.CANARY_FAILED: "stopped: too many of the first ones are failing again. The rest is untouched; fix the cause and run it again.",
    Ended.ERRORS_ROSE: "stopped: too many are failing again. The rest is untouched; run it again to go on.",
    Ended.NO_VERDICTS: "stopped: nothing that was put back gets a verdict. Is a worker running? What is back in its queue stays there.",
    Ended.INTERRUPTED: "interrupted; run it again to go on",
}


def configure(commands: Subcommands) -> None:
    """What the command takes."""
    parser = commands.add_parser("replay", help="put letters back the way they came, once their cause is fixed")
    add_selection(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--canary",
        type=int,
        default=_DEFAULT.canary,
        metavar="N",
        help="so many first, the rest when these went well; 0: no canary (%(default)s)",
    )
    parser.add_argument("--rate", type=float, default=_DEFAULT.per_second, metavar="N", help="at most so many a second (%(default)s)")
    parser.add_argument(
        "--stop-at", type=float, default=_DEFAULT.stop_at_percent, metavar="PERCENT", help="stop when more fail again (%(default)s)"
    )
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help="stop when none gets a verdict (%(default)s)")
    parser.add_argument("--why", default="", help="stands in the log")
    parser.add_argument("--json", action="store_true", help="for scripts: a line for the plan, for progress and for the result")


def run(options: argparse.Namespace) -> int:
    """Replays, and answers 1 where letters were refused or the run stopped."""
    if options.canary < 0 or options.rate <= 0 or options.patience <= 0 or not 0 <= options.stop_at <= 100:
        raise CommandError("--canary is 0 or more, --rate and --patience above 0, --stop-at 0 to 100", exit_code=2)
    return asyncio.run(_run(options, order_of(options)))


async def _run(options: argparse.Namespace, order: Order) -> int:
    settings = load_settings()
    async with service_connection(settings) as connection:
        found = await plan(connection, order)
        if order.ids is not None:
            await _check_ids(connection, order.ids)
        _write_plan(found, as_json=options.json)
        if options.dry_run or not found.letters:
            return 0
        if not found.replayable:
            raise CommandError("nothing was replayed: " + "; ".join(SENTENCES[obstacle] for obstacle in found.obstacles))
        try:
            tally = await (await _prepare(connection, settings, options, order)).replay(found)
        finally:
            end_progress()
    _write_tally(tally, run_id=order.run_id, as_json=options.json)
    # what somebody else replayed meanwhile is done all the same
    return 0 if tally.ended is Ended.DONE and tally.refused.keys() <= {Obstacle.REPLAYED} else 1


async def _prepare(connection: Connection, settings: Settings, options: argparse.Namespace, order: Order) -> Run:
    keyring = await load_keyring(connection, await open_master_keys(settings, connection))
    writer = f"{socket.gethostname()}-replay-{os.getpid()}"

    async def wake(channels: frozenset[str]) -> None:
        await _wake(connection, channels)

    return Run(
        connection=connection,
        order=order,
        bounds=Bounds(canary=options.canary, per_second=options.rate, stop_at_percent=options.stop_at),
        rereader=Rereader(keyring=keyring, carriers=CARRIERS, writer=writer, archive=archive_folder(settings)),
        wake=wake,
        progress=_Lines() if options.json else _show,
        patience_seconds=options.patience,
    )


async def _wake(connection: AsyncConnection[Any], channels: frozenset[str]) -> None:
    await connection.execute(_WAKEUP["notify"], {"channels": sorted(channels)})


async def _check_ids(connection: Connection, ids: tuple[int, ...]) -> None:
    for letter_id in ids:
        found = await show_dead_letter(connection, letter_id)
        if found is None:
            raise CommandError(f"there is no dead letter {letter_id}")
        if resolution := found[0].resolution:
            raise CommandError(f"dead letter {letter_id}: {SENTENCES[Obstacle(resolution)]}")


def _write_plan(found: Plan, *, as_json: bool) -> None:
    lines = [
        {
            "kind": line.kind,
            "cause": line.cause,
            "carrier_id": line.carrier_id,
            "way": line.way,
            "letters": line.letters,
            "replayable": line.replayable,
            "obstacles": {obstacle.value: count for obstacle, count in line.obstacles.items()},
        }
        for line in found.lines
    ]
    if as_json:
        write_json_line({"plan": lines, "letters": found.letters, "replayable": found.replayable})
        return
    if not found.letters:
        write_line("no open letters match")
        return
    write_table(
        ("LETTERS", "CARRIER", "KIND", "CAUSE", "REPLAY MEANS", "CAN"),
        [(line.letters, line.carrier_id, line.kind, line.cause, IN_WORDS[line.way], line.replayable) for line in found.lines],
    )
    for obstacle, count in found.obstacles.most_common():
        write_line(f"{count:,} cannot: {SENTENCES[obstacle]}")


def _show(tally: Tally) -> None:
    if tally.reread_planned:
        show_progress(tally.reread, tally.reread_planned, "messages read again", goes_on=True)
        return
    failed = f", {tally.failed:,} failed again" if tally.failed else ""
    show_progress(tally.replayed + tally.refused.total(), tally.planned, f"replayed, {tally.settled:,} took effect{failed}", goes_on=True)


class _Lines:
    """Progress for scripts, a line a second."""

    def __init__(self) -> None:
        self._written_at = float("-inf")

    def __call__(self, tally: Tally) -> None:
        if time.monotonic() - self._written_at >= _LINE_SECONDS:
            self._written_at = time.monotonic()
            write_json_line({"progress": _document(tally)})


def _document(tally: Tally) -> dict[str, Any]:
    # not asdict: it takes a Counter apart wrongly
    named = {each.name: getattr(tally, each.name) for each in fields(tally)}
    return {**named, "refused": {obstacle.value: count for obstacle, count in tally.refused.items()}}


def _write_tally(tally: Tally, *, run_id: UUID, as_json: bool) -> None:
    if as_json:
        write_json_line({"result": {"run": str(run_id), **_document(tally)}})
        return
    write_line(f"{tally.replayed:,} of {tally.planned:,} letters replayed")
    if tally.settled or tally.failed or tally.waiting:
        write_line(f"{tally.settled:,} took effect, {tally.failed:,} failed again, {tally.waiting:,} still wait")
    if tally.reread:
        write_line(f"{tally.reread:,} messages read again: {tally.corrected:,} events corrected, {tally.added:,} added")
    for obstacle, count in tally.refused.most_common():
        write_line(f"{count:,} not replayed: {SENTENCES[obstacle]}")
    if tally.ended in _WHY_STOPPED:
        write_line(_WHY_STOPPED[tally.ended])
