"""`statesvc dead-letters replay | discard (ID... | --carrier C --cause R ...)`: what changes dead letters.

A replay prints its plan, starts with a canary, goes on at a rate, shows its progress and stops when errors rise.
"""

import argparse
import asyncio
import os
import socket
import time
from dataclasses import fields
from typing import Any, Final, Protocol, get_args
from uuid import UUID, uuid4

from events.carriers import CARRIERS
from events.errors import Cause
from statesvc.cli.arguments import rfc3339_time
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import end_progress, show_progress, write_json_line, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import SingleConnection
from statesvc.database.wakeups.waker import notify
from statesvc.log.archive.folder import archive_folder
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, DeadLetterFilter, DeadLetterKind, Obstacle
from statesvc.repair.dead_letters.listing import find_dead_letter
from statesvc.repair.dead_letters.put_back import DISCARDED_AT_ONCE, discard
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits
from statesvc.repair.dead_letters.replay_plan import Connection, RepairRequest, ReplayPlan, plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayRun, RunPosition, RunProgress
from statesvc.repair.dead_letters.reread import Rereader
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings

_DEFAULT = ReplayLimits()
_LINE_SECONDS: Final = 1.0
_WHY_STOPPED: Final = {
    ReplayEnd.CANARY_FAILED: "stopped: too many of the canary are failing again. The rest is untouched; fix the cause and run it again.",
    ReplayEnd.ERRORS_ROSE: "stopped: too many are failing again. The rest is untouched; run it again to go on.",
    ReplayEnd.NO_VERDICTS: "stopped: nothing that was put back gets a verdict. Is a worker running? What is back in its queue stays there.",
    ReplayEnd.INTERRUPTED: "interrupted; run it again to go on",
}


class Subcommands(Protocol):
    """What argparse calls a special action."""

    def add_parser(self, name: str, **arguments: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own
        """One more subcommand."""


def add_filter(parser: argparse.ArgumentParser) -> None:
    """The options of a filter."""
    parser.add_argument("--carrier", help="of this carrier only")
    parser.add_argument("--cause", choices=[cause.value for cause in Cause], metavar="CAUSE", help="of this cause only")
    parser.add_argument("--kind", choices=get_args(DeadLetterKind), help="of this kind only")
    parser.add_argument("--since", type=rfc3339_time, metavar="T", help="buried since then, RFC 3339")
    parser.add_argument("--until", type=rfc3339_time, metavar="T", help="buried before then, RFC 3339")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """Ids, or a filter."""
    parser.add_argument("ids", nargs="*", type=int, metavar="ID", help="ids of dead letters; or use the filter options")
    add_filter(parser)


def filter_of(options: argparse.Namespace, *, is_open: bool | None = None) -> DeadLetterFilter:
    """The filter that the options state."""
    return DeadLetterFilter(
        kind=options.kind,
        carrier_id=options.carrier,
        cause=options.cause,
        since=options.since,
        until=options.until,
        is_open=is_open,
    )


def _request_of(options: argparse.Namespace) -> RepairRequest:
    """What to act on, never everything by mistake."""
    wanted = filter_of(options)
    if options.ids and wanted != DeadLetterFilter():
        raise CommandError("name dead letters by their ids, or by a filter, not both", exit_code=2)
    if not options.ids and wanted.carrier_id is None and wanted.cause is None and wanted.kind is None:
        raise CommandError("name the dead letters: ids, or --carrier, --cause, --kind", exit_code=2)
    return RepairRequest(
        wanted=wanted,
        ids=tuple(options.ids) or None,
        carriers=frozenset(CARRIERS),
        actor=actor(),
        why=options.why,
        run_id=uuid4(),
    )


def configure_actions(commands: Subcommands) -> None:
    """What the commands take."""
    parser = commands.add_parser("replay", help="put dead letters back the way they came, once their cause is fixed")
    _add_selection(parser)
    parser.add_argument("--dry-run", action="store_true", help="only print the plan")
    parser.add_argument(
        "--canary",
        type=int,
        default=_DEFAULT.canary,
        metavar="N",
        help="how many go first; the rest follows if these go well; 0: no canary (%(default)s)",
    )
    parser.add_argument("--rate", type=float, default=_DEFAULT.per_second, metavar="N", help="at most N a second (%(default)s)")
    parser.add_argument(
        "--stop-at", type=float, default=_DEFAULT.stop_at_percent, metavar="PERCENT", help="stop when more fail again (%(default)s)"
    )
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help="stop when none gets a verdict (%(default)s)")
    parser.add_argument("--why", default="", help="recorded in the log")
    parser.add_argument("--json", action="store_true", help="for scripts: a line for the plan, for progress and for the result")
    parser = commands.add_parser("discard", help="give dead letters up; they stay, listed as discarded")
    _add_selection(parser)
    parser.add_argument("--dry-run", action="store_true", help="only count them")
    parser.add_argument("--why", required=True, help="recorded in the log")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run_replay(options: argparse.Namespace) -> int:
    """Replays, and answers 1 where some were refused or the run stopped."""
    if options.canary < 0 or options.rate <= 0 or options.patience <= 0 or not 0 <= options.stop_at <= 100:
        raise CommandError("--canary is 0 or more, --rate and --patience above 0, --stop-at 0 to 100", exit_code=2)
    return asyncio.run(_replay(options, _request_of(options)))


async def _replay(options: argparse.Namespace, request: RepairRequest) -> int:
    settings = load_settings()
    async with service_connection(settings) as connection:
        found = await plan_replay(connection, request)
        if request.ids is not None:
            await _check_ids(connection, request.ids)
        _write_plan(found, as_json=options.json)
        if options.dry_run or not found.dead_letters:
            return 0
        if not found.replayable:
            raise CommandError("nothing was replayed: " + "; ".join(SENTENCES[obstacle] for obstacle in found.obstacles))
        try:
            progress = await (await _prepare(connection, settings, options, request, found)).replay(found)
        finally:
            end_progress()
    _write_progress(progress, run_id=request.run_id, as_json=options.json)
    # what another operator replayed meanwhile is done nevertheless
    return 0 if progress.ended is ReplayEnd.DONE and progress.refused.keys() <= {Obstacle.REPLAYED} else 1


async def _prepare(
    connection: Connection, settings: Settings, options: argparse.Namespace, request: RepairRequest, found: ReplayPlan
) -> ReplayRun:
    keyring = await load_keyring(connection, await open_master_keys(settings, connection))
    writer = f"{socket.gethostname()}-replay-{os.getpid()}"

    async def wake(channels: frozenset[str]) -> None:
        await _wake(connection, channels)

    return ReplayRun(
        connections=SingleConnection(connection),
        request=request,
        limits=ReplayLimits(canary=options.canary, per_second=options.rate, stop_at_percent=options.stop_at),
        rereader=Rereader(keyring=keyring, carriers=settings.in_account_zones(CARRIERS), writer=writer, archive=archive_folder(settings)),
        wake=wake,
        show=_Lines() if options.json else _show,
        position=RunPosition(up_to=found.up_to),
        patience_seconds=options.patience,
    )


async def _wake(connection: Connection, channels: frozenset[str]) -> None:
    await notify(connection, *sorted(channels))


async def _check_ids(connection: Connection, ids: tuple[int, ...]) -> None:
    for dead_letter_id in ids:
        found = await find_dead_letter(connection, dead_letter_id)
        if found is None:
            raise CommandError(f"there is no dead letter {dead_letter_id}")
        if found.resolution:
            raise CommandError(f"dead letter {dead_letter_id}: {SENTENCES[Obstacle(found.resolution)]}")


def _write_plan(found: ReplayPlan, *, as_json: bool) -> None:
    if as_json:
        lines = [line.model_dump(mode="json") for line in found.lines]
        write_json_line({"plan": lines, "dead_letters": found.dead_letters, "replayable": found.replayable})
        return
    if not found.dead_letters:
        write_line("no open dead letters match")
        return
    write_table(
        ("DEAD LETTERS", "CARRIER", "KIND", "CAUSE", "REPLAY MEANS", "CAN"),
        [(line.dead_letters, line.carrier_id, line.kind, line.cause, IN_WORDS[line.way], line.replayable) for line in found.lines],
    )
    for obstacle, count in found.obstacles.most_common():
        write_line(f"{count:,} cannot: {SENTENCES[obstacle]}")


def _show(progress: RunProgress) -> None:
    if progress.reread_planned:
        show_progress(progress.reread, progress.reread_planned, "messages read again", goes_on=True)
        return
    failed = f", {progress.failed:,} failed again" if progress.failed else ""
    show_progress(
        progress.replayed + progress.refused.total(), progress.planned, f"replayed, {progress.settled:,} took effect{failed}", goes_on=True
    )


class _Lines:
    """Progress for scripts, a line a second."""

    def __init__(self) -> None:
        self._written_at = float("-inf")

    def __call__(self, progress: RunProgress) -> None:
        if time.monotonic() - self._written_at >= _LINE_SECONDS:
            self._written_at = time.monotonic()
            write_json_line({"progress": _document(progress)})


def _document(progress: RunProgress) -> dict[str, Any]:
    # not asdict: it rebuilds a Counter from pairs
    named = {each.name: getattr(progress, each.name) for each in fields(progress) if each.name != "remaining"}
    return {**named, "refused": {obstacle.value: count for obstacle, count in progress.refused.items()}}


def _write_progress(progress: RunProgress, *, run_id: UUID, as_json: bool) -> None:
    if as_json:
        write_json_line({"result": {"run": str(run_id), **_document(progress)}})
        return
    write_line(f"{progress.replayed:,} of {progress.planned:,} dead letters replayed")
    if progress.settled or progress.failed or progress.waiting:
        write_line(f"{progress.settled:,} took effect, {progress.failed:,} failed again, {progress.waiting:,} still wait")
    if progress.reread:
        write_line(f"{progress.reread:,} messages read again: {progress.corrected:,} events corrected, {progress.added:,} added")
    for obstacle, count in progress.refused.most_common():
        write_line(f"{count:,} not replayed: {SENTENCES[obstacle]}")
    if progress.ended in _WHY_STOPPED:
        write_line(_WHY_STOPPED[progress.ended])


def run_discard(options: argparse.Namespace) -> int:
    """Discards, and answers 1 where nothing was there to discard."""
    if not options.why.strip():
        raise CommandError("--why: say why: the log records it", exit_code=2)
    return asyncio.run(_discard(options, _request_of(options)))


async def _discard(options: argparse.Namespace, request: RepairRequest) -> int:
    async with service_connection(load_settings()) as connection:
        found = await plan_replay(connection, request)
        discarded = 0
        if not options.dry_run:
            while part := await discard(connection, request, up_to=found.up_to):
                discarded += part
                if part < DISCARDED_AT_ONCE:
                    break
    if options.json:
        write_json_line({"dead_letters": found.dead_letters, "discarded": discarded, "run": str(request.run_id)})
    elif options.dry_run:
        write_line(f"{found.dead_letters:,} dead letters would be discarded")
    elif discarded:
        write_line(f"{discarded:,} dead letters discarded")
    else:
        raise CommandError("no open dead letter matches")
    return 0 if discarded or options.dry_run else 1
