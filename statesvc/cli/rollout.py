"""`statesvc rollout show | set CARRIER | drill CARRIER | hold CARRIER|all | release CARRIER|all`.

Each change is in effect at the next claim of every worker, and is logged with actor and reason.
`hold` and `release` are declared with their operation.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

from statesvc.cli import declared
from statesvc.cli.api_calls import Calls, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import cell, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls

DIFFS_SHOWN: Final = 20
OURS: Final = "ours"
"""Value of `--stable`: our own stable version again."""
NONE: Final = "none"
"""Value of `--candidate`: the rollout ends."""
_NOTHING: Final = (None, "")
_NO_DIFFS: Final[Mapping[str, Any]] = {
    "totals": {"messages": 0, "errors": 0, "differing": 0, "dropped": 0, "fields": {}},
    "items": [],
    "next_cursor": None,
}
"""Without a candidate: the calls would answer with those of candidates that are gone."""
_LOOK_SECONDS: Final = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    show = commands.add_parser(
        "show",
        help="every rollout that was ever set; of one carrier, what its candidate read differently",
    )
    show.add_argument("carrier_id", metavar="carrier", nargs="?", help="a carrier id")
    show.add_argument("--json", action="store_true", help="for scripts")
    turn = commands.add_parser(
        "set", help="give a candidate version, or another fleet, a share of a carrier's messages"
    )
    fields = (
        "carrier_id",
        "stable",
        "candidate",
        "percent",
        "shadow",
        "fallback_seconds",
        "force",
        "why",
    )
    add_fields(turn, "change_rollout", *fields, arguments=["carrier_id"], required=["percent"])
    turn.add_argument(
        "--guard-messages",
        type=int,
        metavar="N",
        help="fall back to 0 by itself, judging the last N messages",
    )
    turn.add_argument(
        "--guard-errors",
        type=float,
        metavar="PERCENT",
        help="the highest share that the candidate may fail to read",
    )
    turn.add_argument(
        "--guard-differences",
        type=float,
        metavar="PERCENT",
        help="the highest share that it may read differently (needs --shadow)",
    )
    turn.add_argument("--json", action="store_true", help="for scripts")
    rehearse = commands.add_parser(
        "drill", help="rehearse the way back from another fleet's share: to 0 and forth again"
    )
    rehearse.add_argument("carrier_id", metavar="carrier", help="a carrier id")
    rehearse.add_argument(
        "--seconds", type=float, default=60.0, help="how long to wait at 0 (default: 60)"
    )
    rehearse.add_argument("--json", action="store_true", help="for scripts")
    declared.add_declared(commands, "rollout")


def run(options: argparse.Namespace) -> int:
    if options.action in {"hold", "release"}:
        return declared.run(options)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    change = _change(options) if options.action == "set" else None
    async with api_calls(options) as calls:
        if options.action == "drill":
            return await drill(
                calls, options.carrier_id, seconds=options.seconds, as_json=options.json
            )
        if change is not None:
            await _set(calls, options.carrier_id, change, as_json=options.json)
        elif options.carrier_id is not None:
            await _show_one(calls, options.carrier_id, as_json=options.json)
        else:
            await _show(calls, as_json=options.json)
    return 0


def _change(options: argparse.Namespace) -> dict[str, Json]:
    change = {
        "percent": options.percent,
        "shadow": bool(options.shadow),
        "guard": _guard(options),
        "why": options.why or "",
    }
    if options.stable is not None:
        change["stable"] = None if options.stable == OURS else options.stable
    if options.candidate is not None:
        change["candidate"] = None if options.candidate == NONE else options.candidate
    if options.fallback_seconds is not None:
        change["fallback_seconds"] = options.fallback_seconds
    if options.force:
        change["force"] = True
    return change


def _guard(options: argparse.Namespace) -> dict[str, Json] | None:
    bounds = {
        "errors_percent": options.guard_errors,
        "differences_percent": options.guard_differences,
    }
    if options.guard_messages is None:
        if any(bound is not None for bound in bounds.values()):
            raise CommandError(
                "a bound of the guard needs --guard-messages: how many of the last messages it judges",
                exit_code=2,
            )
        return None
    if all(bound is None for bound in bounds.values()):
        raise CommandError(
            "--guard-messages needs --guard-errors or --guard-differences", exit_code=2
        )
    return {"messages": options.guard_messages, **bounds}


async def _set(calls: Calls, carrier_id: str, change: Mapping[str, Json], *, as_json: bool) -> None:
    rollout = await calls.call("change_rollout", change, carrier_id=carrier_id)
    if as_json:
        write_json(rollout)
        return
    stable = rollout["stable"] or "our stable version"
    if rollout["candidate"] is None:
        readers = f"{stable} reads all"
    else:
        shadow = ", with a shadow" if rollout["shadow"] else ""
        readers = f"{rollout['percent']} % to {rollout['candidate']}, the rest to {stable}{shadow}"
    write_line(f"{carrier_id}: {readers}; in effect at the next claim")
    for warning in rollout["warnings"]:
        write_line(warning)


async def _show(calls: Calls, *, as_json: bool) -> None:
    shown = [_described(rollout) for rollout in (await calls.call("list_rollouts"))["items"]]
    if as_json:
        write_json(shown)
    elif shown:
        columns = (
            "carrier",
            "hold",
            "stable",
            "candidate",
            "percent",
            "shadow",
            "guard",
            "changed_at",
            "changed_by",
            "why",
        )
        write_table(
            [column.upper() for column in columns],
            [[cell(rollout[column]) for column in columns] for rollout in shown],
        )
    else:
        write_line("no rollout was ever set: each carrier is read by its stable version")


async def _show_one(calls: Calls, carrier_id: str, *, as_json: bool) -> None:
    rollout = await calls.call("get_rollout", carrier_id=carrier_id)
    page = _NO_DIFFS
    if rollout["candidate"] is not None:
        page = await calls.call(
            "list_rollout_diffs",
            carrier_id=carrier_id,
            candidate=rollout["candidate"],
            limit=DIFFS_SHOWN,
        )
    if as_json:
        write_json(
            {
                **_described(rollout),
                "readings": rollout["readings"],
                "totals": page["totals"],
                "differences": page["items"],
            }
        )
        return
    for name, value in _described(rollout).items():
        write_line(f"{name:<12}{'-' if cell(value) in _NOTHING else cell(value)}")
    _write_readings(rollout)
    if rollout["candidate"] is None:
        return
    totals = page["totals"]
    dropped = f", {totals['dropped']} not tried in time" if totals["dropped"] else ""
    write_line(
        f"tried on    {totals['messages']} messages, {totals['errors']} failed, {totals['differing']} read differently{dropped}"
    )
    if totals["fields"]:
        write_table(
            ("FIELD", "DIFFERENCES"),
            sorted(totals["fields"].items(), key=itemgetter(1), reverse=True),
        )
    if page["items"]:
        columns = ("message_id", "event_id", "field", "stable_value", "candidate_value")
        rows = [[difference[column] for column in columns] for difference in page["items"]]
        write_table(("MESSAGE", "EVENT", "FIELD", "STABLE", "CANDIDATE"), rows)
    if page["next_cursor"] is not None:
        write_line("... there are more: GET /v1/rollouts/{carrier}/diffs")


def _write_readings(rollout: Mapping[str, Any]) -> None:
    if rollout["readings"]:
        names = ("READING", "ROLE", "SHARE", "ASKED", "WAITING", "LEASED", "LEFT TO OTHERS")
        rows = [
            (
                "ours" if reading["reading"] == "statesvc" else reading["reading"],
                reading["role"],
                f"{reading['share']} %",
                "never"
                if reading["asked_seconds_ago"] is None
                else f"{reading['asked_seconds_ago']:.0f} s ago",
                reading["waiting"],
                reading["leased"],
                reading["fallbacks"],
            )
            for reading in rollout["readings"]
        ]
        write_table(names, rows)
    for warning in rollout["warnings"]:
        write_line(warning)


def _described(rollout: Mapping[str, Any]) -> dict[str, Any]:
    guard = rollout["guard"]
    bounds = (
        (("errors", guard["errors_percent"]), ("differences", guard["differences_percent"]))
        if guard
        else ()
    )
    bounded = ", ".join(f"{name} <= {bound:g} %" for name, bound in bounds if bound is not None)
    return {
        "carrier": "all" if rollout["carrier_id"] == "*" else rollout["carrier_id"],
        "hold": rollout["hold"],
        "stable": rollout["stable"],
        "candidate": rollout["candidate"],
        "percent": rollout["percent"],
        "shadow": rollout["shadow"],
        "fallback": f"after {rollout['fallback_seconds']} s" if rollout["readings"] else None,
        "guard": f"{bounded} of {guard['messages']} messages" if guard else None,
        "changed_at": rollout["changed_at"],
        "changed_by": rollout["changed_by"],
        "why": rollout["why"],
    }


async def drill(calls: Calls, carrier_id: str, *, seconds: float, as_json: bool) -> int:
    """Set the share to 0 until the present messages are done, and back; return 1 if any are left.

    They are those that waited or were leased at that moment.
    """
    rollout = await calls.call("get_rollout", carrier_id=carrier_id)
    if not rollout["readings"] or not rollout["percent"]:
        raise CommandError(
            f"{carrier_id}: no other fleet has a share of it, so there is no way back to rehearse",
            exit_code=2,
        )
    if rollout["warnings"]:
        # nobody would take over, and what waits would wait for the fallback
        raise CommandError(
            f"{carrier_id}: a drill would strand messages, and prove nothing: {'; '.join(rollout['warnings'])}",
            exit_code=2,
        )
    asked_at = time.monotonic()
    at_zero = await calls.call(
        "change_rollout", {"percent": 0, "why": "drill: the way back"}, carrier_id=carrier_id
    )
    turned_at = time.monotonic()
    try:
        held = _of(at_zero, "candidate")["leased"]
        taken, finished, stranded = await _until_nothing_is_left(
            calls, carrier_id, turned_at, seconds=seconds
        )
    finally:
        again = {"percent": rollout["percent"], "force": True, "why": "drill: forth again"}
        await calls.call("change_rollout", again, carrier_id=carrier_id)
    if as_json:
        seconds_until = {"set": turned_at - asked_at, "taken": taken, "finished": finished}
        write_json(
            {
                "carrier_id": carrier_id,
                "held": held,
                "stranded": stranded,
                "seconds": seconds_until,
                "percent": rollout["percent"],
            }
        )
        return 1 if stranded else 0
    write_line(
        f"{carrier_id}: at 0 % after {turned_at - asked_at:.2f} s; what waited was leased by the stable reader {_said(taken)}"
    )
    write_line(f"the candidate held {held} messages, and had ended them {_said(finished)}")
    write_line(f"stranded: {stranded}; at {rollout['percent']} % again")
    return 1 if stranded else 0


async def _until_nothing_is_left(
    calls: Calls, carrier_id: str, turned_at: float, *, seconds: float
) -> tuple[float | None, float | None, int]:
    """Return the seconds until stable had leased the backlog and the candidate ended its leases.

    Then the rest of both.
    """
    taken: float | None = None
    finished: float | None = None
    while True:
        rollout = await calls.call("get_rollout", carrier_id=carrier_id)
        passed = time.monotonic() - turned_at
        stable, candidate = _of(rollout, "stable"), _of(rollout, "candidate")
        is_late = (stable["oldest_seconds"] or 0.0) > passed
        taken = passed if taken is None and not is_late else taken
        finished = passed if finished is None and not candidate["leased"] else finished
        if (taken is not None and finished is not None) or passed > seconds:
            left = stable["waiting"] if taken is None else 0
            return taken, finished, left + (candidate["leased"] if finished is None else 0)
        await asyncio.sleep(_LOOK_SECONDS)


def _of(rollout: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        reading for reading in rollout["readings"] if reading["role"] == role
    )
    return found


def _said(seconds: float | None) -> str:
    return "not yet" if seconds is None else f"after {seconds:.2f} s"
