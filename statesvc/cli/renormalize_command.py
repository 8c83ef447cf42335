"""`statesvc renormalize --carrier C [--since T] [--read-by VERSION] [--dry-run]`: read history again, append corrections."""

import argparse
import asyncio
import os
import socket
from dataclasses import asdict

from events.carriers import CARRIERS
from statesvc.cli.arguments import rfc3339_time
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.database.wakeups.waker import notify
from statesvc.log.archive.folder import archive_folder
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.renormalize import RereadTask, renormalize
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--carrier", required=True, help="a carrier id")
    parser.add_argument("--since", type=rfc3339_time, metavar="T", help="only messages received since then, RFC 3339 (default: all)")
    parser.add_argument("--read-by", metavar="VERSION", help="only what this version read, as after a rollout that was turned back")
    parser.add_argument("--rate", type=float, metavar="N", help="at most N messages a second (default: as fast as it goes)")
    parser.add_argument("--dry-run", action="store_true", help="report, change nothing")
    parser.add_argument("--why", default="", help="recorded in the log")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Reads with the stable version and the mappings that stand."""
    carrier = CARRIERS.get(options.carrier)
    if carrier is None:
        raise CommandError(f"no carrier {options.carrier!r}: `statesvc carriers` lists them", exit_code=2)
    if options.read_by is not None and options.read_by not in carrier.normalizers:
        raise CommandError(f"{options.carrier} has no version {options.read_by!r}, but {', '.join(carrier.normalizers)}", exit_code=2)
    if options.rate is not None and options.rate <= 0:
        raise CommandError("--rate must be above 0", exit_code=2)
    report = asyncio.run(_run(options))
    if options.json:
        write_json(_document(report))
    else:
        _write(report, dry_run=options.dry_run)
    return 0


async def _run(options: argparse.Namespace) -> RenormalizeReport:
    settings = load_settings()
    async with service_connection(settings) as connection:
        task = RereadTask(
            carrier=settings.in_account_zones(CARRIERS)[options.carrier],
            keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
            writer=f"{socket.gethostname()}-renormalize-{os.getpid()}",
            actor=actor(),
            since=options.since,
            read_by=options.read_by,
            dry_run=options.dry_run,
            messages_per_second=options.rate,
            why=options.why,
            archive=archive_folder(settings),
        )
        report = await renormalize(connection, task, _show_progress)
        if report.transitions:
            await notify(connection, OUTBOX)
        return report


async def _show_progress(done: int, total: int) -> None:
    show_progress(done, total, "messages")


def _document(report: RenormalizeReport) -> dict[str, object]:
    return {
        **{name: value for name, value in asdict(report).items() if name != "moved_shipments"},
        "moved": [{"from": before, "to": now, "shipments": count} for (before, now), count in report.moved.most_common()],
        "rejected": len(report.rejected),
        "unopened": len(report.unopened),
        "changes": [{"from": before, "to": now, "events": count} for (before, now), count in report.changes.most_common()],
        "beyond": dict(+report.beyond),
        "codes": sorted(map(list, report.codes), key=str),
        "codes_left": sorted(map(list, report.codes_left), key=str),
    }


def _write(report: RenormalizeReport, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    write_line(f"{report.messages} messages with {report.events} events read again, {report.unchanged} as before")
    write_line(f"{report.corrected} {would}corrected, {report.retracted} {would}taken back, {report.added} {would}added")
    if report.changes:
        write_table(("IN EFFECT", "NOW", "EVENTS"), [(before, now, count) for (before, now), count in report.changes.most_common()])
    if report.notifications:
        write_line(f"{report.notifications} notifications")
    if report.unreadable:
        write_line(
            f"{report.unreadable} could not be read again: their message was erased or is stored no longer, their codes alone do not say "
            "what they mean, and no mapping names them. They stand as they were read."
        )
    for name, count in (+report.beyond).items():
        write_line(f"{count} differ in {name}, which no correction can change: they stand as they were read")
