"""Files of evidence: the bundle alone, or in a zip with the documents that were sealed with it. Pure."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from statesvc.addons.evidence.bundle import BUNDLE_FILE, FORMAT
from statesvc.addons.evidence.check_bundle import BundleFlaw

UNPACKED_BYTES_MAX: Final = 1 << 30
"""Bytes of an unpacked zip: anybody may have made it."""


class NotEvidenceError(ValueError):
    """The file is no evidence, so nothing in it holds or does not hold."""


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """`document`: the bundle as it was written. `files`: of a zip its files by name; empty for a bundle alone."""

    document: bytes
    digests: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def remarks(self) -> Iterator[BundleFlaw]:
        """Yield documents that the zip should have."""
        for name in self.digests:
            if self.files and name not in self.files:
                yield BundleFlaw(f"/documents/{name}", "is not in the zip, so it was not checked")


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
