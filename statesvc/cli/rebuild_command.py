"""`statesvc rebuild PROJECTION [--compare | --rollback | --finish]`: rebuild it from the log.

Alongside live traffic.
"""

import argparse
import asyncio
import os
import time
from collections import Counter
from dataclasses import asdict

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_json, write_line, write_table
from statesvc.cli.session import actor, running_database
from statesvc.files.archive_folder import archive_folder
from statesvc.log.history import History
from statesvc.settings.service_settings import load_settings
from statesvc.shipments.rebuild.folding import Drift
from statesvc.shipments.rebuild.rebuild import Rebuild

_SHOWN = 50


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("projection", choices=["shipment"], help="the projection")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--compare",
        action="store_true",
        help="only report where the live one differs from the log; 1 where it does",
    )
    what.add_argument(
        "--rollback",
        action="store_true",
        help="put the table back that the last rebuild replaced, brought up to date",
    )
    what.add_argument(
        "--finish", action="store_true", help="let go of the table that the last rebuild replaced"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="processes that fold (default: one per core, %(default)s)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="compare on this Spark cluster: spark://host:7077, or local[N]",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    if options.processes < 1:
        raise CommandError("--processes must be 1 or more", exit_code=2)
    if options.master is not None and not options.compare:
        raise CommandError("--master goes with --compare", exit_code=2)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    settings = load_settings()
    async with running_database(settings) as dsns:
        # a pooler in transaction mode would lose the lock that makes us alone
        owner = (
            dsns.owner
            if settings.database.owner_url is not None or settings.database.database_url is None
            else dsns.listen
        )
        archive = History(archive_folder(settings))
        task = Rebuild(
            owner_dsn=owner,
            actor=actor(),
            processes=options.processes,
            progress=_show_progress,
            master=options.master,
            archive=archive,
        )
        if options.compare:
            events, drift = await task.compare()
            _write_drift(events, drift, as_json=options.json)
            return 1 if drift else 0
        done, summary = await _change(task, options)
        if options.json:
            write_json(done)
        else:
            write_line(summary)
        return 0


async def _change(task: Rebuild, options: argparse.Namespace) -> tuple[dict[str, object], str]:
    """Return the outcome, for scripts and in words."""
    if options.rollback:
        await task.roll_back()
        return {
            "rolled_back": True
        }, "the table from before the rebuild is live again; `--rollback` once more undoes this"
    if options.finish:
        await task.finish()
        return {"finished": True}, "the old table is gone"
    began = time.monotonic()
    events = await task.rebuild()
    seconds = round(time.monotonic() - began, 3)
    summary = (
        f"{events:,} events in {seconds:.1f} s; swapped in. `--rollback` goes back, `--finish` lets"
        " the old table go."
    )
    return {"events": events, "seconds": seconds}, summary


def _write_drift(events: int, drift: list[Drift], *, as_json: bool) -> None:
    if as_json:
        write_json({"events": events, "drift": [asdict(one) for one in drift]})
        return
    if not drift:
        write_line(f"no drift: every row is what its events add up to ({events:,} events)")
        return
    write_line(
        f"{len(drift):,} shipments differ from what their events ({events:,} in all) add up to"
    )
    write_table(
        ("FIELD", "SHIPMENTS"), Counter(name for one in drift for name in one.fields).most_common()
    )
    write_table(
        ("SHIPMENT", "CARRIER", "FIELDS"),
        [(one.shipment_id, one.carrier_id, ", ".join(one.fields)) for one in drift[:_SHOWN]],
    )
    if len(drift) > _SHOWN:
        write_line(f"... and {len(drift) - _SHOWN:,} more: --json lists all")


def _show_progress(done: int, pieces: int, events: int) -> None:
    show_progress(done, pieces, f"slices, {events:,} events")
