"""`statesvc verify [--checkpoint FILE]`: the whole log against its signed heads, and against one that was kept elsewhere.

`statesvc verify --bundle FILE --key KEY`: one evidence file, without any database.
"""

import argparse
import asyncio
import os
from dataclasses import asdict
from pathlib import Path

from events.checkpoint import NoteError, VerifierKey
from statesvc.cli.output import write_json, write_line
from statesvc.cli.progress import show_progress
from statesvc.cli.refusal import CommandError
from statesvc.cli.session import running_database
from statesvc.evidence.check import check
from statesvc.keys import MasterKeyError
from statesvc.roles.master_key import master_keys
from statesvc.settings import Settings, load_settings
from statesvc.verification.processes import Access
from statesvc.verification.run import Order, Report, Verification

_PATH_MAX = 255


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="a head that was kept elsewhere: shows also what was cut off")
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="verify this evidence file instead, without a database; needs --key")
    parser.add_argument(
        "--key", action="append", default=[], type=_key, metavar="KEY", help="trust this key (or the ones in this file), not the log's own"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="work on so many (default %(default)s)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep the progress there, and go on from it after a stop")
    parser.add_argument("--skip-parts", action="store_true", help="do not open sealed personal parts (needs no master key then)")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """1 when anything is wrong."""
    if options.processes < 1:
        raise CommandError("--processes must be at least 1", exit_code=2)
    options.key = [key for keys in options.key for key in keys]
    if options.bundle is not None:
        return _bundle(options)
    report = asyncio.run(_run(options))
    if options.json:
        write_json({**asdict(report), "sound": report.sound})
    else:
        _write(report, against=options.checkpoint)
    return 0 if report.sound else 1


def _bundle(options: argparse.Namespace) -> int:
    if not options.key:
        raise CommandError("--bundle needs --key, the log's public key from a source that you trust", exit_code=2)
    try:
        document = options.bundle.read_bytes()
    except OSError as error:
        raise CommandError(f"{options.bundle} cannot be read: {type(error).__name__}", exit_code=2) from error
    flaws = check(document, options.key)
    if options.json:
        write_json({"sound": not flaws, "flaws": [asdict(flaw) for flaw in flaws]})
    elif flaws:
        for flaw in flaws:
            write_line(f"{flaw.pointer or '/'}: {flaw.why}")
        write_line(f"THIS EVIDENCE DOES NOT HOLD: {len(flaws)} places, above.")
    else:
        write_line("The evidence holds: it is as it was sealed, and each of its entries stands in the signed log.")
    return 1 if flaws else 0


async def _run(options: argparse.Namespace) -> Report:
    settings = load_settings()
    async with running_database(settings) as dsns:
        order = Order(
            access=Access(dsn=dsns.listen, master_keys=None if options.skip_parts else _master(settings)),
            note=_note(options.checkpoint),
            note_name=str(options.checkpoint),
            keys=options.key,
            processes=options.processes,
            state_file=options.state,
        )
        verification = Verification(order, lambda done, total: show_progress(done, total, "entries"))
        return await asyncio.to_thread(verification.run)


def _master(settings: Settings) -> tuple[bytes, ...]:
    try:
        return master_keys(settings).keys
    except MasterKeyError as error:
        raise CommandError(f"{error}; or leave the sealed parts out with --skip-parts") from error


def _note(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {type(error).__name__}", exit_code=2) from error


def _write(report: Report, *, against: Path | None) -> None:
    for fault in report.faults:
        write_line(str(fault))
    rate = report.entries / max(report.seconds, 0.001)
    looked = f"{report.entries:,} entries in {report.batches:,} batches, {report.heads:,} checkpoints, {rate:,.0f} entries a second"
    if report.sound:
        waiting = f"; {report.waiting:,} batches wait to be sealed" if report.waiting else ""
        compared = "" if against is None else f" It begins with the log that {against} is the head of."
        write_line(f"The log is sound: {looked}{waiting}.{compared}")
        if against is None:
            write_line("That nothing was cut off shows only against a head that was kept elsewhere: --checkpoint FILE.")
    else:
        write_line(f"THE LOG WAS CHANGED: {len(report.faults)} places, above; {looked}.")


def _key(text: str) -> list[VerifierKey]:
    path = Path(text)
    lines = path.read_text("utf-8").split() if len(text) < _PATH_MAX and path.is_file() else [text]
    try:
        return [VerifierKey.parse(line) for line in lines]
    except NoteError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
