"""The forms of evidence by media type, each made of the bundle and sealed with it."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import Environment, StrictUndefined, Template

from statesvc.addons.evidence import wording as words
from statesvc.addons.evidence.bundle import BUNDLE_FILE, EvidencePart
from statesvc.addons.evidence.dispute_fields import DOCUMENT_FILE
from statesvc.addons.evidence.evidence_report import EvidenceReport, report_of
from statesvc.addons.evidence.gather import GatheredEvidence
from statesvc.addons.evidence.pdf import annex_pages, print_report
from statesvc.addons.evidence.report_sections import annex_of, details_of, verification_of
from statesvc.http.document_forms import FORMS

ANNEX_FILE: Final = "evidence-annex.pdf"
VERIFIER_FILE: Final = "verify_evidence.py"


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    content: bytes
    has_annex: bool = False


def print_form(
    gathered: GatheredEvidence, media_type: str, part: EvidencePart = "document"
) -> EvidenceFile:
    """Print the evidence in a form; `part`: of a PDF.

    Raises TypesettingError, NoTypesetterError.
    """
    return (
        _annex(gathered)
        if part == "annex" and media_type == FORMS[".pdf"]
        else _PRINTERS[media_type](gathered)
    )


def _json(gathered: GatheredEvidence) -> EvidenceFile:
    return EvidenceFile(orjson.dumps(gathered.sealed()))


def _html(gathered: GatheredEvidence) -> EvidenceFile:
    return EvidenceFile(html_of(report_of(gathered.bundle)))


def _pdf(gathered: GatheredEvidence) -> EvidenceFile:
    printed = print_report(report_of(gathered.bundle))
    return EvidenceFile(printed.document.content, printed.has_annex)


def _annex(gathered: GatheredEvidence) -> EvidenceFile:
    return EvidenceFile(annex_pages(report_of(gathered.bundle)).content)


def _zip(gathered: GatheredEvidence) -> EvidenceFile:
    """Zip PDF, JSON, signed head, and the verifier with how to run it."""
    report = report_of(gathered.bundle)
    printed = print_report(report)
    documents = {DOCUMENT_FILE: printed.document.content}
    if printed.has_annex:
        documents[ANNEX_FILE] = annex_pages(report).content
    bundle = gathered.sealed(documents)
    verifier = (files("statesvc.addons.evidence") / VERIFIER_FILE).read_bytes()
    contents = {
        "README.txt": words.README.encode(),
        **documents,
        BUNDLE_FILE: orjson.dumps(bundle),
        "checkpoint.txt": bundle["log"]["checkpoint"].encode(),
        **gathered.standard_proofs(),
        VERIFIER_FILE: verifier,
    }
    return EvidenceFile(_zipped(contents, bundle))


def _zipped(contents: Mapping[str, bytes], bundle: Mapping[str, Any]) -> bytes:
    made_at = datetime.fromisoformat(bundle["made_at"]).astimezone(UTC)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(
                zipfile.ZipInfo(name, made_at.timetuple()[:6]), content, zipfile.ZIP_DEFLATED
            )
    return written.getvalue()


_PRINTERS: Final[Mapping[str, Callable[[GatheredEvidence], EvidenceFile]]] = dict(
    zip(FORMS.values(), (_json, _html, _pdf, _zip), strict=True)
)


def html_of(report: EvidenceReport) -> bytes:
    """Print a self-contained page.

    Every value is escaped: carriers and customers wrote most of them.
    """
    sections = [*details_of(report), verification_of(report), *annex_of(report)]
    return _template().render(report=report, sections=sections, words=words).encode()


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string(
        (files("statesvc.addons.evidence") / "evidence.html").read_text("utf-8")
    )
