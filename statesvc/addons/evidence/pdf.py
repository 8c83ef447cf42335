"""The report as PDF in any script: one file, or the document and its annex if it is too long.

Card networks bound a bank's documents: from 19 pages on Mastercard charges for it. So the document
never has more than 18; the rest is in the annex.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final

import orjson

from statesvc.addons.evidence import wording as words
from statesvc.addons.evidence.evidence_report import EvidenceReport
from statesvc.addons.evidence.report_sections import (
    ReportSection,
    annex_of,
    details_of,
    verification_of,
)

PAGES_MAX: Final = 18
_SECONDS_MAX: Final = 30.0
# More do not fit, however short.
_ROWS_A_PAGE_MAX: Final = 60
_KEY_STATEMENTS: Final = 120
_SUMMARY_VALUE_MAX: Final = 200
_CLAUSES: Final = re.compile(r".+[.;] ", re.DOTALL)
_CELL_MAX: Final = 240
_MONOSPACE: Final = "DejaVu Sans Mono"
_FONTS: Final = (
    "Noto Sans",
    *(
        f"Noto Sans {script}"
        for script in (
            "Arabic",
            "Armenian",
            "Bengali",
            "Devanagari",
            "Ethiopic",
            "Georgian",
            "Gujarati",
        )
    ),
    *(
        f"Noto Sans {script}"
        for script in (
            "Gurmukhi",
            "Hebrew",
            "Kannada",
            "Khmer",
            "Lao",
            "Malayalam",
            "Myanmar",
            "Sinhala",
        )
    ),
    *(f"Noto Sans {script}" for script in ("Tamil", "Telugu", "Thai", "Math")),
    "Droid Sans Fallback",
    "Statesvc Hangul",
)


class TypesettingError(RuntimeError):
    """The pages could not be made: a defect of ours, or not enough memory."""


class TypesettingTimeoutError(TypesettingError):
    """The pages were not made in time: the machine is busy."""

    def __str__(self) -> str:
        return (
            f"the pages were not typeset within {_SECONDS_MAX:g} s; try again, or ask for HTML or"
            " JSON"
        )


class NoTypesetterError(RuntimeError):
    """typst is not installed."""

    def __str__(self) -> str:
        return (
            "evidence as PDF needs the extra: pip install 'statesvc[pdf]'; HTML and JSON need"
            " nothing"
        )


def require_typesetter() -> None:
    if find_spec("typst") is None:
        raise NoTypesetterError


@dataclass(frozen=True, slots=True)
class PrintedPages:
    content: bytes
    pages: int
    summary_page: int


@dataclass(frozen=True, slots=True)
class PrintedReport:
    """The document, and whether its annex is a file of its own, which `annex_pages` makes."""

    document: PrintedPages
    has_annex: bool


def print_report(report: EvidenceReport) -> PrintedReport:
    """Print the document of at most 18 pages. Raises TypesettingError."""
    details, annex, verification = details_of(report), annex_of(report), verification_of(report)
    rows = sum(len(section.rows) for section in (*details, *annex))
    # by the count of rows first: hundreds of pages would be typeset to be thrown away
    if rows <= _ROWS_A_PAGE_MAX * PAGES_MAX:
        whole = _typeset(report, [*details, verification, *annex])
        if whole.pages <= PAGES_MAX:
            return PrintedReport(whole, has_annex=False)
        document = _typeset(report, [*details, verification])
        if document.pages <= PAGES_MAX:
            return PrintedReport(document, has_annex=True)
    return PrintedReport(_shortened(report), has_annex=True)


def annex_pages(report: EvidenceReport) -> PrintedPages:
    """Print all statements, conclusions, notifications and actions. Raises TypesettingError."""
    sections = [*details_of(report), verification_of(report), *annex_of(report)]
    return _typeset(report, sections, is_annex=True)


def _shortened(report: EvidenceReport) -> PrintedPages:
    """Print the statements that matter most, as many of them as fit."""
    number = _KEY_STATEMENTS
    while True:
        details = [_clipped(section) for section in details_of(report, key_only=number)]
        document = _typeset(report, [*details, verification_of(report)])
        if document.pages <= PAGES_MAX or number == 1:
            return document
        # by halves: each try is typeset anew, and a few must do
        number //= 2


def _clipped(section: ReportSection) -> ReportSection:
    return replace(section, rows=[[_clip(cell, _CELL_MAX) for cell in row] for row in section.rows])


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _typeset(
    report: EvidenceReport, sections: Sequence[ReportSection], *, is_annex: bool = False
) -> PrintedPages:
    """Typeset without unreadable pictures, and with long values of the summary cut where they
    would not fit the page.
    """
    require_typesetter()
    document = _document(report, sections, is_annex=is_annex)
    pages = _run(document)
    if pages is None:
        # a carrier's picture that cannot be read is the likeliest reason, and the text matters more
        document["sections"] = [{**section, "pictures": []} for section in document["sections"]]
        pages = _run(document)
    if pages is not None and pages.summary_page > 1:
        summary = document["summary"]
        for name in ("facts", "stated", "remarks", "notified"):
            summary[name] = _cut(summary[name])
        pages = _run(document)
    if pages is None:
        raise TypesettingError("the pages could not be typeset")
    return pages


def _cut(value: Any) -> Any:  # noqa: ANN401 - lists of lists of text
    """Cut long texts of the summary, behind a whole clause where there is one."""
    if not isinstance(value, str):
        return [_cut(member) for member in value]
    if len(value) <= _SUMMARY_VALUE_MAX:
        return value
    clause = _CLAUSES.match(value[:_SUMMARY_VALUE_MAX])
    return f"{clause[0].strip()} …" if clause else _clip(value, _SUMMARY_VALUE_MAX)


def _document(
    report: EvidenceReport, sections: Sequence[ReportSection], *, is_annex: bool
) -> dict[str, Any]:
    document = {
        "title": report.title,
        "reference": report.reference,
        "foot": "annex" if is_annex else "",
        "made_at": report.made_at,
        "fonts": _FONTS,
        "mono": (_MONOSPACE, *_FONTS),
        "words": {"stated": words.STATED},
        "summary": None if is_annex else asdict(report.summary),
        "sections": [
            {**asdict(replace(section, pictures=())), "pictures": []} for section in sections
        ],
    }
    shown: dict[str, Any] = _shown(document)
    for printed, section in zip(shown["sections"], sections, strict=True):
        printed["pictures"] = [
            {"what": proof.what, "format": proof.image_format, "bytes": list(proof.image)}
            for proof in section.pictures
        ]
    return shown


def _run(document: Mapping[str, Any]) -> PrintedPages | None:
    """Run the typesetter; None: it could not be printed as it is.

    Raises TypesettingTimeoutError.
    """
    command = [sys.executable, "-m", "statesvc.addons.evidence.typesetter"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=orjson.dumps(document),
            stdout=subprocess.PIPE,
            timeout=_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TypesettingTimeoutError from error
    if done.returncode:
        return None
    numbers, _, content = done.stdout.partition(b"\n")
    pages, summary_page = map(int, numbers.split())
    return PrintedPages(content, pages, summary_page)


def _shown(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replace characters without a glyph, or that reorder text, by their code points."""
    match value:
        case str():
            return (
                value
                # nearly every text: the others are looked up sign by sign
                if value.isascii() and value.isprintable()
                else "".join(map(_printable, value))
            )
        case Mapping():
            return {name: _shown(member) for name, member in value.items()}
        case list() | tuple():
            return [_shown(member) for member in value]
        case _:
            return value


def _printable(character: str) -> str:
    # a missing glyph would print an empty box, which reads as nothing
    if character == "\n" or _is_covered(ord(character)):
        return character
    return " " if character == "\t" else f"[U+{ord(character):04X}]"


def _is_covered(character: int) -> bool:
    firsts, lasts = _coverage()
    place = bisect_right(firsts, character) - 1
    return place >= 0 and character <= lasts[place]


@cache
def _coverage() -> tuple[Sequence[int], Sequence[int]]:
    """Read the ranges of printable characters, written by `tests/evidence_fonts.py`."""
    lines = (
        (files("statesvc.addons.evidence") / "fonts" / "coverage.csv")
        .read_text("ascii")
        .split()[1:]
    )
    firsts, lasts = zip(*(line.split(",") for line in lines), strict=True)
    return [int(first, 16) for first in firsts], [int(last, 16) for last in lasts]
