"""`statesvc verify --bundle FILE --key KEY`: checks an evidence file without a database."""

import argparse
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from statesvc.addons.evidence.bundle import BUNDLE_FILE, FORMAT
from statesvc.addons.evidence.check_bundle import BundleFlaw, check, remarks
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line

_DOES_NOT_HOLD: Final = 1
# Bytes of an unpacked zip: anybody may have made it.
UNPACKED_BYTES_MAX: Final = 1 << 30


class NotEvidenceError(ValueError):
    """The file is no evidence."""


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """`document`: the bundle as it was written.

    `files`: of a zip its files by name; empty for a bundle alone.
    """

    document: bytes
    digests: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def remarks(self) -> Iterator[BundleFlaw]:
        """Yield documents that the zip lacks."""
        for name in self.digests:
            if self.files and name not in self.files:
                yield BundleFlaw(f"/documents/{name}", "is not in the zip, so it was not checked")


def verify_bundle(options: argparse.Namespace) -> int:
    """Verify the file and print its flaws; return the exit code."""
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
    flaws = check(
        evidence.document,
        options.key,
        trust=options.tsa_cert,
        files=evidence.files,
        witnesses=options.witness,
    )
    # beside flaws a remark would only distract, and its fields may not be there
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
            "The evidence holds: it is as it was sealed, and each of its entries stands in the"
            " signed log."
        )
        if options.witness:
            names = ", ".join(witness.name for witness in options.witness)
            write_line(f"Its checkpoint was cosigned by {names}.")
    return _DOES_NOT_HOLD if flaws else 0


def read_evidence(content: bytes) -> EvidenceFiles:
    """Read a `.json` or a `.zip`. Raises NotEvidenceError."""
    files = _unpacked(content) if zipfile.is_zipfile(io.BytesIO(content)) else {}
    if files and BUNDLE_FILE not in files:
        raise NotEvidenceError(f"a zip without {BUNDLE_FILE}")
    document = files.get(BUNDLE_FILE, content)
    try:
        bundle = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise NotEvidenceError("neither JSON nor a zip") from error
    if not isinstance(bundle, dict) or bundle.get("format") != FORMAT:
        raise NotEvidenceError(f"not of the format {FORMAT}")
    digests = bundle.get("documents")
    return EvidenceFiles(document, digests if isinstance(digests, dict) else {}, files)


def _unpacked(content: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # before anything is unpacked: a small zip may hold terabytes
            if sum(each.file_size for each in archive.infolist()) > UNPACKED_BYTES_MAX:
                raise NotEvidenceError("a zip of more than 1 GiB")
            return {name: archive.read(name) for name in archive.namelist()}
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        zlib.error,
    ) as error:
        raise NotEvidenceError("a zip that is damaged") from error
