"""`statesvc verify [--checkpoint FILE]`: checks the whole log and the projection.

`statesvc verify --bundle FILE --key KEY`: checks an evidence file, without any database.

Exit codes: 0 no fault; 1 the log was changed, a part of it cannot be read, or the evidence does not
hold; 2 wrong use; 3 the log is as it was written, and the projection differs from it.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from events.merkle.checkpoint import NoteError, VerifierKey, cosignature
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.addons.verify.verify_log import Verification, VerificationReport, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_json, write_line
from statesvc.cli.session import actor, connect, running_database
from statesvc.database.dsns import Dsns
from statesvc.database.keyring_store import MasterKeyError
from statesvc.database.queries import queries
from statesvc.files.archive_folder import archive_folder
from statesvc.log.history import History
from statesvc.log.signing_keys import read_pinned_keys
from statesvc.log.timestamp import StampError, Trust
from statesvc.roles.master_key import open_master_keys
from statesvc.seams import parts, sentence
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.shipments.rebuild.rebuild import Rebuild

_SQL = queries("statesvc.addons.verify", "verify_command")
_PATH_MAX: Final = 255
CHANGED: Final = 1
PROJECTION_DIFFERS: Final = 3
_EXIT_CODES: Final = (
    "exit codes: 0 nothing is wrong; 1 the log was changed, a part of it cannot be read, or the"
    " evidence does not hold; 2 wrong use, or no evidence file; 3 the log is as it was written, but"
    " live states differ from it: statesvc rebuild shipment"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXIT_CODES
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="a head that was stored elsewhere: shows also what was cut off",
    )
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE",
        help="verify this evidence (.json or .zip) instead, without a database; needs --key",
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        type=_key,
        metavar="KEY",
        help="trust this key, or those in this file; default: the sealer's pinned ones",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="worker processes (default %(default)s)",
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="ignored since 0.2, and refused from 0.4 on: a run begins anew",
    )
    parser.add_argument(
        "--tsa-cert",
        type=_trust,
        metavar="FILE",
        help="check time stamps by this authority's root certificate (PEM)",
    )
    parser.add_argument(
        "--witness",
        action="append",
        default=[],
        type=partial(_key, is_witness=True),
        metavar="KEY",
        help="demand that the witness with this key cosigned the evidence, or the head given",
    )
    parser.add_argument(
        "--skip-parts",
        action="store_true",
        help="do not open sealed personal parts (needs no master key then)",
    )
    parser.add_argument(
        "--skip-projection",
        action="store_true",
        help="do not fold the shipments to compare their live state",
    )
    parser.add_argument(
        "--as-auditor",
        action="store_true",
        help="log in as the role that only reads the log, and no key",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="read on this Spark cluster: spark://host:7077, or local[N]; sealed parts stay closed",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Verify; return 0, `CHANGED` or `PROJECTION_DIFFERS`."""
    if options.processes < 1:
        raise CommandError("--processes must be at least 1", exit_code=2)
    if options.state is not None:
        sys.stderr.write("statesvc: --state is ignored: a run begins anew\n")
    # no key leaves this machine
    options.skip_parts = options.skip_parts or options.master is not None
    options.key = [key for keys in options.key for key in keys]
    options.witness = [key for keys in options.witness for key in keys]
    if options.bundle is not None:
        return _bundle(options)
    report = asyncio.run(_run(options))
    if options.json:
        # not asdict: it rebuilds a Counter from pairs
        write_json(
            {
                **asdict(report),
                "unchecked": dict(report.unchecked),
                "sound": report.sound,
                "consistent": report.consistent,
            }
        )
    else:
        _write(report, against=options.checkpoint, stamps_trusted=options.tsa_cert is not None)
    if not report.consistent:
        return CHANGED
    return PROJECTION_DIFFERS if report.projection else 0


def _bundle(options: argparse.Namespace) -> int:
    for verify_bundle in parts("documents"):
        return int(verify_bundle(options))
    raise CommandError(sentence("evidence", "--bundle"), exit_code=2)


async def _run(options: argparse.Namespace) -> VerificationReport:
    settings = load_settings()
    async with running_database(settings) as dsns:
        dsn = _address(settings, dsns, as_auditor=options.as_auditor)
        opens = not options.skip_parts and await _may_read_keys(dsn)
        if not (opens or options.skip_parts):
            sys.stderr.write(
                "Sealed personal parts stay closed: this role may not read their keys. All else is"
                " verified.\n"
            )
        keys, keys_name = _trusted_keys(options, settings)
        order = VerificationRequest(
            access=LogAccess(
                dsn=dsn,
                master_keys=await _master(settings, dsn) if opens else None,
                archive=archive_folder(settings),
            ),
            note=_note(options.checkpoint, options.witness),
            note_name=str(options.checkpoint),
            keys=keys,
            keys_name=keys_name,
            processes=options.processes,
            master=options.master,
            trust=options.tsa_cert,
        )
        verification = Verification(
            order, lambda done, total: show_progress(done, total, "entries")
        )
        try:
            report = await asyncio.to_thread(verification.run)
        except asyncio.CancelledError:
            # Ctrl-C, which reaches neither a thread nor processes in sessions of their own
            verification.abandon()
            raise
        # what cannot be read cannot be folded
        if not (options.skip_projection or report.unread_files):
            await _compare_projection(order, report)
        return report


async def _compare_projection(order: VerificationRequest, report: VerificationReport) -> None:
    """Report each shipment whose live state differs from the fold of its events."""
    task = Rebuild(
        owner_dsn=order.access.dsn,
        actor=actor(),
        processes=order.processes,
        master=order.master,
        progress=_show_slices,
        archive=History(order.access.archive),
    )
    _, drift = await task.compare()
    faults = (
        LogFault(
            "shipment",
            f"shipment_id={one.shipment_id}",
            ", ".join(one.fields),
            "is not what the shipment's events add up to",
        )
        for one in drift
    )
    report.projection += islice(faults, FAULTS_MAX)
    report.shipments_drifted = len(drift)


def _show_slices(done: int, pieces: int, events: int) -> None:
    show_progress(done, pieces, f"slices folded, {events:,} events")


def _trusted_keys(options: argparse.Namespace, settings: Settings) -> tuple[list[VerifierKey], str]:
    """Return the keys of `--key`, else the pinned ones unless a head is given to trust,
    and where they are from.
    """
    file = settings.log_keys_file
    if options.key or options.checkpoint is not None or file is None:
        return options.key, "--key"
    try:
        return read_pinned_keys(file), str(file)
    except (OSError, NoteError) as error:
        raise CommandError(f"the log's pinned keys in {file} cannot be read: {error}") from error


def _address(settings: Settings, dsns: Dsns, *, as_auditor: bool) -> str:
    """Return the auditor's address where it is set, or asked for."""
    if as_auditor and dsns.auditor is None:
        raise CommandError(
            "--as-auditor needs STATESVC_AUDITOR_URL, the address of a role that only reads"
            " the log",
            exit_code=2,
        )
    wanted = as_auditor or settings.database.auditor_url is not None
    return dsns.auditor if wanted and dsns.auditor is not None else dsns.listen


async def _may_read_keys(dsn: str) -> bool:
    """Return whether this role may read keys: an auditor may not."""
    async with await connect(dsn) as connection:
        row = await (await connection.execute(_SQL["may_read_keys"])).fetchone()
    return row is not None and bool(row[0])


async def _master(settings: Settings, dsn: str) -> tuple[bytes, ...]:
    try:
        async with await connect(dsn) as connection:
            return (await open_master_keys(settings, connection)).keys
    except MasterKeyError as error:
        raise CommandError(f"{error}; or leave the sealed parts out with --skip-parts") from error


def _note(path: Path | None, witnesses: Sequence[VerifierKey]) -> str | None:
    if path is None:
        if witnesses:
            raise CommandError("--witness needs --checkpoint or --bundle", exit_code=2)
        return None
    try:
        note = path.read_text("utf-8")
        for witness in witnesses:
            cosignature(note, "", witness)
    except NoteError as error:
        raise CommandError(f"{path} is not cosigned by {witness.name}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}",
            exit_code=2,
        ) from error
    return note


def _write(report: VerificationReport, *, against: Path | None, stamps_trusted: bool) -> None:
    for fault in (*report.faults, *report.projection):
        write_line(str(fault))
    for remark in report.remarks:
        write_line(f"Look at this: {remark}")
    rate = report.entries / max(report.seconds, 0.001)
    looked = (
        f"{report.entries:,} entries in {report.batches:,} batches, {report.heads:,} checkpoints,"
        f" {rate:,.0f} entries a second"
    )
    if report.consistent:
        waiting = f"; {report.waiting:,} batches wait to be sealed" if report.waiting else ""
        compared = (
            "" if against is None else f" It begins with the log that {against} is the head of."
        )
        if report.sound:
            write_line(f"The log is sound: {looked}{waiting}.{compared}")
            write_line(f"Its keys are trusted by {report.trusted_by}.")
        else:
            write_line(f"The log is consistent with itself: {looked}{waiting}.")
            write_line(
                "Whether it is the one that was signed shows only with a key from outside this"
                " database: --key KEY."
            )
        for what, count in sorted(report.unchecked.items()):
            write_line(f"Not checked: {count:,} {what}.")
        for fork in report.forks:
            write_line(f"It was forked after a restore: {fork}.")
        if report.stamps:
            checked = (
                "signed by the authority"
                if stamps_trusted
                else "signatures unchecked: --tsa-cert FILE"
            )
            write_line(f"{report.stamps:,} checkpoints bear a time stamp ({checked}).")
        if against is None:
            write_line(
                "That nothing was cut off shows only against a head that was stored elsewhere:"
                " --checkpoint FILE."
            )
    else:
        _write_changed(report, looked)
    if report.shipments_drifted:
        about = (
            "The projection differs from the log"
            if report.consistent
            else "The projection differs, too"
        )
        write_line(
            f"{about}: {report.shipments_drifted:,} shipments, above. `statesvc rebuild shipment`"
            " writes them anew from the log."
        )


def _write_changed(report: VerificationReport, looked: str) -> None:
    tables, files = (
        {fault.table.partition(",")[0] for fault in report.faults},
        set(report.unread_files),
    )
    if tables <= files:
        write_line(
            f"A PART OF THE LOG CANNOT BE READ: {len(files)} archived files are missing or altered,"
            f" above; {looked}."
        )
    elif report.unqueued and len(report.faults) == 1:
        write_line(
            f"NOT ALL OF THE LOG IS SEALED: {report.unqueued:,} batches were never queued, above;"
            f" what was sealed is unchanged; {looked}."
        )
    else:
        write_line(f"THE LOG WAS CHANGED: {len(report.faults)} places, above; {looked}.")


def _trust(path: str) -> Trust:
    try:
        return Trust.parse(Path(path).read_bytes())
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{path} cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    except StampError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def _key(text: str, *, is_witness: bool = False) -> list[VerifierKey]:
    path = Path(text)
    lines = path.read_text("utf-8").split() if len(text) < _PATH_MAX and path.is_file() else [text]
    try:
        return [VerifierKey.parse(line, is_witness=is_witness) for line in lines]
    except NoteError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
