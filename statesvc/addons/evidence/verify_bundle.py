"""`statesvc verify --bundle FILE --key KEY`: one evidence file, without any database."""

import argparse
from dataclasses import asdict
from typing import Final

from statesvc.addons.evidence.check_bundle import check, remarks
from statesvc.addons.evidence.evidence_files import NotEvidenceError, read_evidence
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line

_DOES_NOT_HOLD: Final = 1


def verify_bundle(options: argparse.Namespace) -> int:
    """Verify the file and print what is wrong with it; return the exit code."""
    if not options.key:
        raise CommandError(
            "--bundle needs --key, the log's public key from a source that you trust", exit_code=2
        )
    try:
        evidence = read_evidence(options.bundle.read_bytes())
    except OSError as error:
        raise CommandError(
            f"{options.bundle} cannot be read: {error.strerror or type(error).__name__}",
            exit_code=2,
        ) from error
    except NotEvidenceError as error:
        raise CommandError(
            f"{options.bundle} is not an evidence file: {error}", exit_code=2
        ) from error
    flaws = check(evidence.document, options.key, trust=options.tsa_cert, files=evidence.files)
    strange = [] if flaws else [*remarks(evidence.document), *evidence.remarks()]
    if options.json:
        write_json(
            {
                "sound": not flaws,
                "flaws": [asdict(flaw) for flaw in flaws],
                "remarks": [asdict(remark) for remark in strange],
            }
        )
    elif flaws:
        for flaw in flaws:
            write_line(f"{flaw.pointer or '/'}: {flaw.why}")
        write_line(f"THIS EVIDENCE DOES NOT HOLD: {len(flaws)} places, above.")
    else:
        for remark in strange:
            write_line(f"Look at this: {remark.pointer}: {remark.why}")
        write_line(
            "The evidence holds: it is as it was sealed, and each of its entries stands in the signed log."
        )
    return _DOES_NOT_HOLD if flaws else 0
