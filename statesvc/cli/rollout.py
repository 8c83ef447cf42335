"""`statesvc rollout show | set CARRIER | hold CARRIER|all | release CARRIER|all`: which version reads, and the kill switch.

Each is in effect at the next claim of every worker, and stands in the log with who and why.
"""

import argparse
import asyncio
from dataclasses import asdict
from operator import itemgetter
from typing import Any, Final

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.waker import notify
from statesvc.inbox.rollouts.dial import ALL, Dial, Guard, Rollout, lacking_workers, list_rollouts, refusals, rollout_of, set_dial, set_hold
from statesvc.inbox.rollouts.trials import StoredDifference, Totals, list_differences, totals_of
from statesvc.settings.service_settings import load_settings

_NEWEST: Final = 2**63 - 1
DIFFS_SHOWN: Final = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="show | set | hold | release")
    show = commands.add_parser("show", help="every rollout that was ever set; of one carrier, what its candidate read differently")
    show.add_argument("carrier", nargs="?", help="a carrier id")
    show.add_argument("--json", action="store_true", help="for scripts")
    turn = commands.add_parser("set", help="give a candidate version a share of a carrier's messages")
    turn.add_argument("carrier", help="a carrier id")
    turn.add_argument("--candidate", help="a registered version (default: the current one)")
    turn.add_argument("--percent", type=int, required=True, help="0 to 100; the same messages always go the same way")
    turn.add_argument("--shadow", action="store_true", help="read each message with both versions and store the differences")
    turn.add_argument("--guard-messages", type=int, metavar="N", help="fall back to 0 by itself, judging the last N messages")
    turn.add_argument("--guard-errors", type=float, metavar="PERCENT", help="the highest share that the candidate may fail to read")
    turn.add_argument(
        "--guard-differences", type=float, metavar="PERCENT", help="the highest share that it may read differently (needs --shadow)"
    )
    turn.add_argument("--why", default="", help="recorded in the log")
    for name, summary in (("hold", "keep a carrier's messages, process none"), ("release", "process them again")):
        command = commands.add_parser(name, help=summary)
        command.add_argument("carrier", help="a carrier id, or all")
        command.add_argument("--why", default="", help="recorded in the log")


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    anyone = options.action in {"hold", "release"} and options.carrier == "all"
    if options.carrier is not None and not anyone and options.carrier not in CARRIERS:
        raise CommandError(f"no carrier {options.carrier!r}: `statesvc carriers` lists them", exit_code=2)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        match options.action:
            case "show" if options.carrier is not None:
                await _show_one(connection, options.carrier, as_json=options.json)
            case "show":
                await _show(connection, as_json=options.json)
            case "set":
                await _set(connection, options)
            case action:
                await _hold(connection, options, hold=action == "hold")
    return 0


async def _set(connection: AsyncConnection[Any], options: argparse.Namespace) -> None:
    current = (await rollout_of(connection, options.carrier)).rollout
    dial = Dial(candidate=options.candidate or current.candidate, percent=options.percent, shadow=options.shadow, guard=_guard(options))
    refused = refusals(dial, CARRIERS[options.carrier])
    if refused:
        raise CommandError("; ".join(f"--{each.member}: {each.why}" for each in refused), exit_code=2)
    await set_dial(connection, options.carrier, dial, why=options.why, actor=actor())
    shadow = ", with a shadow" if dial.shadow else ""
    write_line(f"{options.carrier}: {dial.percent} % to version {dial.candidate or '-'}{shadow}; in effect at the next claim")
    for lacking in await lacking_workers(connection):
        if lacking.carrier_id == options.carrier:
            write_line(lacking.sentence)


def _guard(options: argparse.Namespace) -> Guard | None:
    bounds = (options.guard_errors, options.guard_differences)
    if options.guard_messages is None:
        if bounds != (None, None):
            raise CommandError("a bound of the guard needs --guard-messages: how many of the last messages it judges", exit_code=2)
        return None
    if options.guard_messages < 1 or bounds == (None, None) or any(bound is not None and not 0 <= bound <= 100 for bound in bounds):
        raise CommandError("--guard-messages must be 1 or more, with --guard-errors or --guard-differences of 0 to 100", exit_code=2)
    return Guard(messages=options.guard_messages, errors_percent=options.guard_errors, differences_percent=options.guard_differences)


async def _hold(connection: AsyncConnection[Any], options: argparse.Namespace, *, hold: bool) -> None:
    carrier_id = ALL if options.carrier == "all" else options.carrier
    await set_hold(connection, carrier_id=carrier_id, hold=hold, why=options.why, actor=actor())
    if not hold:
        await notify(connection, INBOX)
    write_line(f"{options.carrier}: {'held' if hold else 'released'}; in effect at the next claim")


async def _show(connection: AsyncConnection[Any], *, as_json: bool) -> None:
    shown = [_described(dial) for dial in await list_rollouts(connection)]
    if as_json:
        write_json(shown)
    elif shown:
        columns = ("carrier", "hold", "candidate", "percent", "shadow", "guard", "changed_at", "changed_by", "why")
        write_table([column.upper() for column in columns], [[dial[column] for column in columns] for dial in shown])
    else:
        write_line("no rollout was ever set: each carrier is read by its stable version")


async def _show_one(connection: AsyncConnection[Any], carrier_id: str, *, as_json: bool) -> None:
    dial = (await rollout_of(connection, carrier_id)).rollout
    totals = await totals_of(connection, carrier_id, dial.candidate)
    found, more = await list_differences(connection, carrier_id, candidate=dial.candidate, before=_NEWEST, limit=DIFFS_SHOWN)
    if as_json:
        write_json({**_described(dial), "totals": asdict(totals), "differences": [asdict(each) for each in found]})
        return
    for name, value in _described(dial).items():
        write_line(f"{name:<12}{'-' if value is None else value}")
    _write_totals(totals)
    _write_differences(found, more=more is not None)


def _write_totals(totals: Totals) -> None:
    write_line(f"tried on    {totals.messages} messages, {totals.errors} failed, {totals.differing} read differently")
    if totals.fields:
        write_table(("FIELD", "DIFFERENCES"), sorted(totals.fields.items(), key=itemgetter(1), reverse=True))


def _write_differences(found: list[StoredDifference], *, more: bool) -> None:
    if found:
        rows = [(each.message_id, each.event_id, each.field, each.stable_value, each.candidate_value) for each in found]
        write_table(("MESSAGE", "EVENT", "FIELD", "STABLE", "CANDIDATE"), rows)
    if more:
        write_line("... there are more: GET /v1/rollouts/{carrier}/diffs")


def _described(dial: Rollout) -> dict[str, Any]:
    guard = dial.guard
    bounds = (("errors", guard.errors_percent), ("differences", guard.differences_percent)) if guard else ()
    bounded = ", ".join(f"{name} <= {bound:g} %" for name, bound in bounds if bound is not None)
    return {
        "carrier": "all" if dial.carrier_id == ALL else dial.carrier_id,
        "hold": dial.hold,
        "candidate": dial.candidate,
        "percent": dial.percent,
        "shadow": dial.shadow,
        "guard": f"{bounded} of {guard.messages} messages" if guard else None,
        "changed_at": dial.changed_at.isoformat(timespec="seconds") if dial.changed_at else None,
        "changed_by": dial.changed_by,
        "why": dial.why,
    }
