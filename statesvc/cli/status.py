"""`statesvc status [--watch] [--json]`: one screen, worst first. 1 when something needs a human."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import psycopg

from statesvc.api.service_status import ServiceStatus, Trouble, Urgency, duration, read_status
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import FINDING, service_connection
from statesvc.database.dsns import database_name
from statesvc.database.sql_errors import Failure, failure
from statesvc.operations.running_processes import last_minute
from statesvc.settings.service_settings import Settings, load_settings

MARKS: Final = {Urgency.NOW: "NOW", Urgency.HUMAN: "DO", Urgency.NOTE: "note"}
_WATCH_SECONDS: Final = 2.0
_CLEAR: Final = "\x1b[H\x1b[2J"


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--watch", action="store_true", help="again every two seconds, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints it."""
    return asyncio.run(_run(watch=options.watch, as_json=options.json))


async def _run(*, watch: bool, as_json: bool) -> int:
    settings = load_settings()
    database = database_name(settings.database)
    while True:
        try:
            return await _watch(settings, database, watch=watch, as_json=as_json)
        except psycopg.Error as error:
            if failure(error) is not Failure.UNAVAILABLE:
                raise
            away = Trouble(urgency=Urgency.NOW, about="database", text=_away(error), page="AckAvailability")
        if as_json:
            write_json({"database": database, "needs_human": True, "troubles": _documents([away])})
        else:
            write_line(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {database}")
            _show_troubles([away])
        if not watch:
            return 1
        sys.stdout.flush()
        await asyncio.sleep(_WATCH_SECONDS)


def _away(error: psycopg.Error) -> str:
    why = str(error).strip().split("\n", 1)[0]
    return f"the database is away: no push is acknowledged, and nothing is processed ({why})"


async def _watch(settings: Settings, database: str, *, watch: bool, as_json: bool) -> int:
    async with service_connection(settings, limits=FINDING) as connection:
        while True:
            status = await read_status(connection)
            if as_json:
                write_json({"database": database, **document(status)})
            else:
                if watch and sys.stdout.isatty():
                    sys.stdout.write(_CLEAR)
                write_line(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {database}")
                _show(status)
            if not watch:
                return 1 if status.needs_human else 0
            sys.stdout.flush()
            await asyncio.sleep(_WATCH_SECONDS)


def document(status: ServiceStatus) -> dict[str, Any]:
    """For scripts."""
    sample = status.sample
    return {
        "needs_human": status.needs_human,
        "troubles": _documents(status.troubles),
        "promises": [asdict(promise) for promise in sample.promises],
        "pushes_last_minute": last_minute(sample.running)._asdict(),
        "queue": status.queue,
        "pushes_last_hour": {carrier_id: pushes._asdict() for carrier_id, pushes in status.pushes.items()},
        "processes": dict(sample.processes),
        "oldest_unsealed_seconds": sample.oldest_unsealed_seconds,
        "database_bytes": sample.size_bytes,
    }


def _documents(troubles: Sequence[Trouble]) -> list[dict[str, Any]]:
    return [{**asdict(trouble), "page": None if trouble.page is None else f"docs/runbook/{trouble.page}.md"} for trouble in troubles]


def _show_troubles(troubles: Sequence[Trouble]) -> None:
    write_table(
        ("", "ABOUT", "", "SEE"),
        [(MARKS[t.urgency], t.about, t.text, None if t.page is None else f"docs/runbook/{t.page}.md") for t in troubles],
    )


def _show(status: ServiceStatus) -> None:
    if status.troubles:
        _show_troubles(status.troubles)
    else:
        write_line("all is well")
    write_line("")
    for promise in status.sample.promises:
        behind = "never compared" if promise.behind_seconds is None else f"compared up to {duration(promise.behind_seconds)} ago"
        write_line(
            f"{promise.promise}: {promise.expected:,} in eight days, {promise.waiting:,} wait, {promise.missing:,} missing; {behind}"
        )
    _show_carriers(status)
    outbox = status.queue["outbox"]
    write_line(f"outbox: {outbox['ready']:,} ready, {outbox['leased']:,} on their way, {outbox['scheduled']:,} to be tried later")
    running = ", ".join(f"{count} {role}" for role, count in sorted(status.sample.processes)) or "none"
    write_line(f"processes: {running}; database: {status.sample.size_bytes / 1e9:,.2f} GB")


def _show_carriers(status: ServiceStatus) -> None:
    pushed = {carrier_id: pushes for carrier_id, pushes in status.pushes.items() if any(pushes)}
    last, now = dict(status.sample.last_pushes), time.time()
    lanes = {carrier_id: lane for carrier_id, lane in status.queue["carriers"].items() if carrier_id in pushed or _waits(lane)}
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


def _waits(lane: Any) -> bool:  # noqa: ANN401 - a typed dictionary, read by key
    return bool(lane["ready"] or lane["leased"] or lane["scheduled"] or lane["held"])
