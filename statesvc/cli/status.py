"""`statesvc status [--watch] [--json]`: one screen, worst first. 1 when something needs a human."""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from statesvc.background.duration import duration
from statesvc.cli.api_calls import Calls
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls, away

MARKS: Final = {"now": "NOW", "human": "DO", "note": "note"}
_WATCH_SECONDS: Final = 2.0
_CLEAR: Final = "\x1b[H\x1b[2J"


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--watch", action="store_true", help="again every two seconds, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints it."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    while True:
        try:
            async with api_calls(options, is_finding=True) as calls:
                return await _watch(calls, options)
        except Exception as error:
            gone = away(error, options)
            if gone is None:
                raise
        if options.json:
            write_json({**gone.named, "needs_human": True, "troubles": [gone.trouble]})
        else:
            _write_head(gone.named)
            _show_troubles([gone.trouble])
        if not options.watch:
            return 1
        sys.stdout.flush()
        await asyncio.sleep(_WATCH_SECONDS)


async def _watch(calls: Calls, options: argparse.Namespace) -> int:
    while True:
        status = await calls.call("get_status")
        if options.json:
            write_json({**calls.named, **status})
        else:
            if options.watch and sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            _write_head(calls.named)
            _show(status)
        if not options.watch:
            return 1 if status["needs_human"] else 0
        sys.stdout.flush()
        await asyncio.sleep(_WATCH_SECONDS)


def _write_head(named: Mapping[str, str]) -> None:
    write_line(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {' '.join(named.values())}")


def _show_troubles(troubles: Sequence[Mapping[str, Any]]) -> None:
    write_table(("", "ABOUT", "", "SEE"), [(MARKS[one["urgency"]], one["about"], one["text"], one["page"]) for one in troubles])


def _show(status: Mapping[str, Any]) -> None:
    if status["troubles"]:
        _show_troubles(status["troubles"])
    else:
        write_line("all is well")
    write_line("")
    for promise in status["promises"]:
        seconds = promise["behind_seconds"]
        behind = "never compared" if seconds is None else f"compared up to {duration(seconds)} ago"
        counts = f"{promise['expected']:,} in eight days, {promise['waiting']:,} wait, {promise['missing']:,} missing"
        write_line(f"{promise['promise']}: {counts}; {behind}")
    _show_carriers(status)
    outbox = status["queue"]["outbox"]
    write_line(f"outbox: {outbox['ready']:,} ready, {outbox['leased']:,} on their way, {outbox['scheduled']:,} to be tried later")
    running = ", ".join(f"{count} {role}" for role, count in sorted(status["processes"].items())) or "none"
    write_line(f"processes: {running}; database: {status['database_bytes'] / 1e9:,.2f} GB")


def _show_carriers(status: Mapping[str, Any]) -> None:
    pushed = {carrier_id: tuple(pushes.values()) for carrier_id, pushes in status["pushes_last_hour"].items() if any(pushes.values())}
    last, now = status["last_pushes"], time.time()
    lanes = {carrier_id: lane for carrier_id, lane in status["queue"]["carriers"].items() if carrier_id in pushed or _waits(lane)}
    if lanes:
        write_line("")
        write_table(
            ("CARRIER", "LAST PUSH", "NEW IN AN HOUR", "REPEATED", "REFUSED", "READY", "OLDEST", "IN WORK", "LATER", "HELD"),
            [
                (
                    carrier_id,
                    f"{duration(max(0.0, now - last[carrier_id]))} ago" if carrier_id in last else None,
                    *pushed.get(carrier_id, (0, 0, 0)),
                    lane["ready"],
                    None if lane["oldest_ready_seconds"] is None else duration(lane["oldest_ready_seconds"]),
                    lane["leased"],
                    lane["scheduled"],
                    lane["held"],
                )
                for carrier_id, lane in sorted(lanes.items())
            ],
        )
        write_line("")


def _waits(lane: Mapping[str, Any]) -> bool:
    return bool(lane["ready"] or lane["leased"] or lane["scheduled"] or lane["held"])
