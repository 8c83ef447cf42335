"""`statesvc status [--watch] [--json]`: one screen, worst first.

Exits with 1 if a human is needed.
"""

import argparse
import asyncio
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from statesvc.background.duration import duration
from statesvc.cli.api_calls import Calls, ServiceAwayError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.presentation import paint
from statesvc.cli.service_calls import api_calls
from statesvc.cli.service_profile import service_of
from statesvc.health.finding import Urgency
from statesvc.telemetry.colour import Colour

_COLOURS: Final = {Urgency.NOW: Colour.RED, Urgency.HUMAN: Colour.YELLOW, Urgency.NOTE: Colour.DIM}
_PROMISES: Final = {"settled": "Messages", "notified": "Notifications"}
_DAYS: Final = 8
_GAP: Final = "  "
_MARK_WIDTH: Final = 6
_ABOUT_WIDTH_MAX: Final = 24
_TEXT_WIDTH_MIN: Final = 20
_WATCH_SECONDS: Final = 2.0
_AWAY_PAGE: Final = "docs/runbook/AckAvailability.md"
_CLEAR: Final = "\x1b[H\x1b[2J"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch", action="store_true", help="again every two seconds, until Ctrl-C"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    while True:
        try:
            async with api_calls(options, is_finding=True) as calls:
                return await _watch(calls, options)
        except Exception as error:
            gone = _away(error, options)
            if gone is None:
                raise
        about, name, text = gone
        trouble = {"urgency": "now", "about": about, "text": text, "page": _AWAY_PAGE}
        if options.json:
            write_json({about: name, "needs_human": True, "troubles": [trouble]})
        else:
            _write_head({about: name})
            _show_troubles([trouble])
        if not options.watch:
            return 1
        sys.stdout.flush()
        await asyncio.sleep(_WATCH_SECONDS)


def _away(error: Exception, options: argparse.Namespace) -> tuple[str, str, str] | None:
    """Return what does not answer (`service` or `database`), its name, and the consequence.

    None: the error has another cause.
    """
    service = service_of(options)
    if service is not None:
        return ("service", service.url, str(error)) if isinstance(error, ServiceAwayError) else None
    # loads the database driver, which a call from afar does not need
    from statesvc.cli.local_calls import away_database  # noqa: PLC0415

    database = away_database(error)
    if database is None:
        return None
    name, why = database
    text = f"the database is away: no push is acknowledged, and nothing is processed ({why})"
    return "database", name, text


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
    write_line(f"{time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime())}  {' '.join(named.values())}")


def _show_troubles(troubles: Sequence[Mapping[str, Any]]) -> None:
    """Show each task once, with its consequences below."""
    about_width = min(max(len(one["about"]) for one in troubles), _ABOUT_WIDTH_MAX)
    indent = " " * (_MARK_WIDTH + about_width + len(_GAP))
    causes = [one for one in troubles if one.get("cause") is None]
    for index, one in enumerate(causes):
        urgency = Urgency(one["urgency"])
        _write_indented(
            f"{urgency.label:<{_MARK_WIDTH}}{one['about']:<{about_width}}{_GAP}",
            one["text"],
            _COLOURS[urgency],
        )
        page = one["page"]
        if page is None or page in {other["page"] for other in causes[index + 1 :]}:
            continue
        for text in _effects([each for each in troubles if each.get("cause") == page]):
            _write_indented(f"{indent}so: ", text)
        command = f"statesvc runbook {page.rpartition('/')[2].removesuffix('.md')}"
        write_line(paint(f"{indent}> {one.get('runbook_url') or command}", Colour.DIM))


def _effects(effects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield effects of the same kind together, the first of them in full."""
    for _, group in groupby(effects, key=itemgetter("page")):
        first, *others = group
        also = f" (and {', '.join(one['about'] for one in others)})" if others else ""
        yield f"{first['about']}: {first['text']}{also}"


def _write_indented(start: str, text: str, colour: Colour | None = None) -> None:
    """Wrap the text on a terminal; its lines begin below each other."""
    width = shutil.get_terminal_size().columns - len(start)
    lines = (
        textwrap.wrap(text, width) if sys.stdout.isatty() and width >= _TEXT_WIDTH_MIN else [text]
    )
    write_line(paint(start[:_MARK_WIDTH], colour) + start[_MARK_WIDTH:] + lines[0])
    for line in lines[1:]:
        write_line(" " * len(start) + line)


def _show(status: Mapping[str, Any]) -> None:
    if status["troubles"]:
        _show_troubles(status["troubles"])
    else:
        write_line(paint("all is well", Colour.GREEN))
    write_line("")
    for promise in status["promises"]:
        write_line(_accounted(promise))
    _show_carriers(status)
    write_line(f"Sending: {_sending(status['queue']['outbox'])}")
    running = (
        ", ".join(f"{count} {role}" for role, count in sorted(status["processes"].items()))
        or "no process"
    )
    write_line(f"Running: {running}; database: {status['database_bytes'] / 1e9:,.2f} GB")


def _accounted(promise: Mapping[str, Any]) -> str:
    """Say whether all that was promised in the last days is there, or on its way."""
    name, seconds = _PROMISES[promise["promise"]], promise["behind_seconds"]
    checked = "not checked yet" if seconds is None else f"checked {duration(seconds)} ago"
    expected, waiting, missing = promise["expected"], promise["waiting"], promise["missing"]
    if not expected:
        return (
            f"{name}: not counted yet"
            if seconds is None
            else (
                f"{name}: none in the {_DAYS} days up to {duration(seconds)} ago; newer ones are"
                " counted next"
            )
        )
    if not waiting and not missing:
        return f"{name}: all {expected:,} of {_DAYS} days accounted for ({checked})"
    lost = f", {paint(f'{missing:,} MISSING', Colour.RED)}" if missing else ""
    return (
        f"{name}: {expected - waiting - missing:,} of {expected:,} of {_DAYS} days done,"
        f" {waiting:,} wait{lost} ({checked})"
    )


def _sending(outbox: Mapping[str, int]) -> str:
    parts = (
        (outbox["ready"], "to be sent"),
        (outbox["leased"], "on their way"),
        (outbox["scheduled"], "to be tried again later"),
    )
    return (
        ", ".join(f"{count:,} {words}" for count, words in parts if count)
        or "no notification waits"
    )


def _show_carriers(status: Mapping[str, Any]) -> None:
    pushed = {
        carrier_id: tuple(pushes.values())
        for carrier_id, pushes in status["pushes_last_hour"].items()
        if any(pushes.values())
    }
    last, now = status["last_pushes"], time.time()
    lanes = {
        carrier_id: lane
        for carrier_id, lane in status["queue"]["carriers"].items()
        if carrier_id in pushed or _waits(lane)
    }
    if lanes:
        write_line("")
        write_table(
            (
                "CARRIER",
                "LAST PUSH",
                "IN AN HOUR",
                "REPEATED",
                "REFUSED",
                "READY",
                "OLDEST",
                "IN WORK",
                "LATER",
                "HELD",
            ),
            [
                (
                    carrier_id,
                    (
                        f"{duration(max(0.0, now - last[carrier_id]), units=1)} ago"
                        if carrier_id in last
                        else None
                    ),
                    *pushed.get(carrier_id, (0, 0, 0)),
                    lane["ready"],
                    (
                        None
                        if lane["oldest_ready_seconds"] is None
                        else duration(lane["oldest_ready_seconds"])
                    ),
                    lane["leased"],
                    lane["scheduled"],
                    lane["held"],
                )
                for carrier_id, lane in sorted(lanes.items())
            ],
            wide=("IN WORK", "LATER"),
        )
        write_line("")


def _waits(lane: Mapping[str, Any]) -> bool:
    return bool(lane["ready"] or lane["leased"] or lane["scheduled"] or lane["held"])
