"""The report as a PDF: with its own fonts, page numbers, and the same words as the HTML page."""

import logging
import warnings
from collections.abc import Iterable, Sequence
from importlib.resources import as_file, files
from typing import Final

from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace, TTFFont

from statesvc.evidence import wording as words
from statesvc.evidence.evidence_report import EvidenceReport

_FONT: Final = "DejaVu"
_GREY: Final = (90, 90, 90)
_HEADING: Final = FontFace(emphasis="BOLD", color=_GREY)


class _Document(FPDF):
    """A4, with the title and the page number at the foot."""

    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self._about = title
        for style, name in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
            with as_file(files("statesvc.evidence") / "fonts" / name) as path:
                self.add_font(_FONT, style, path)
        font = self.fonts[_FONT.lower()]
        if not isinstance(font, TTFFont):
            raise TypeError("the font has no table of its characters")
        self._glyphs = frozenset(font.cmap)
        self.set_title(f"Evidence: {title}")
        self.set_margins(18, 16, 18)
        self.set_auto_page_break(auto=True, margin=18)
        self.add_page()

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font(_FONT, size=7.5)
        self.set_text_color(*_GREY)
        self.cell(0, 5, f"Evidence: {self._about}", align="L")
        self.set_x(self.l_margin)
        self.cell(0, 5, f"{self.page_no()} / {{nb}}", align="R")
        self.set_text_color(0)

    def heading(self, text: str) -> None:
        """A section, on the same page as what follows."""
        if self.get_y() > self.h - 50:
            self.add_page()
        self.ln(5)
        self.set_font(_FONT, "B", 12)
        self.multi_cell(0, 7, self.shown(text), new_x="LMARGIN", new_y="NEXT")
        self.set_draw_color(200)
        self.line(self.l_margin, self.get_y(), self.w - self.r_margin, self.get_y())
        self.ln(2)

    def paragraph(self, text: str, size: float = 9) -> None:
        """Running text."""
        self.set_font(_FONT, size=size)
        self.multi_cell(0, size * 0.52, self.shown(text), new_x="LMARGIN", new_y="NEXT", align="L")
        self.ln(1.5)

    def grid(self, headings: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
        """A table whose head is repeated on every page."""
        self.set_font(_FONT, size=7.5)
        with self.table(
            col_widths=tuple(widths),
            headings_style=_HEADING,
            borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            line_height=4,
            text_align="LEFT",
            padding=0.8,
            first_row_as_headings=bool(headings),
        ) as table:
            if headings:
                table.row(list(headings))
            for row in rows:
                table.row([self.shown(cell) for cell in row])
        self.ln(1)

    def shown(self, text: str) -> str:
        """The text in characters that the font has; any other by its code point, so that nothing is lost."""
        return "".join(each if each == "\n" or ord(each) in self._glyphs else f"[U+{ord(each):04X}]" for each in text)


def pdf_of(report: EvidenceReport) -> bytes:
    """The PDF file."""
    # it logs each table of the font that it leaves out
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # the library warns where it subsets a font's optional tables
        warnings.simplefilter("ignore")
        return _written(report)


def _written(report: EvidenceReport) -> bytes:
    pdf = _Document(report.title)
    pdf.set_font(_FONT, "B", 16)
    pdf.multi_cell(0, 9, pdf.shown(report.title), new_x="LMARGIN", new_y="NEXT")
    pdf.paragraph(report.verdict, size=11)
    pdf.grid((), report.facts, (30, 70))
    pdf.heading("What the carrier said")
    pdf.paragraph(words.BOTH_CLOCKS, size=7.5)
    columns = ("Happened", "Recorded", "What", "Where", "Code", "Entry")
    pdf.grid(
        columns,
        [(o.occurred, o.recorded, _with_note(o.what, o.note), o.where, o.code, str(o.index)) for o in report.statements],
        (23, 21, 34, 22, 12, 8),
    )
    pdf.heading("What we concluded")
    if report.conclusions:
        pdf.grid(
            ("Recorded", "State", "Because of", "Entry"),
            [(o.recorded, o.what, o.code, str(o.index)) for o in report.conclusions],
            (24, 38, 48, 10),
        )
    else:
        pdf.paragraph("Nothing: no scan changed the state.")
    if report.contradictions:
        pdf.heading("What contradicted it")
        pdf.grid(
            columns,
            [(o.occurred, o.recorded, o.what, o.where, o.code, str(o.index)) for o in report.contradictions],
            (23, 21, 34, 22, 12, 8),
        )
    pdf.heading("What was sent, and the answers")
    if report.attempts:
        pdf.grid(
            ("Sent", "To", "What", "Answer", "Entry"),
            [(o.at, o.receiver, o.what, o.answer, str(o.index)) for o in report.attempts],
            (24, 28, 32, 28, 8),
        )
    else:
        pdf.paragraph("Nothing was sent: there was no subscription to it.")
    if report.bodies:
        pdf.heading("What was sent, word for word")
        for one in report.bodies:
            pdf.paragraph(f"To {one.receiver}, {one.webhook_id}, attempt {one.attempts}:\n{one.text}", size=7.5)
    if report.actions:
        pdf.heading("What operators did")
        pdf.grid(("When", "What", "Entry"), [(o.at, o.what, str(o.index)) for o in report.actions], (24, 84, 10))
    pdf.add_page()
    pdf.heading("How to verify this")
    for text in words.HOW_TO_VERIFY:
        pdf.paragraph(text)
    pdf.grid((), report.proof, (30, 90))
    pdf.paragraph(report.checkpoint, size=7.5)
    return bytes(pdf.output())


def _with_note(text: str, note: str) -> str:
    return f"{text}\n{note}" if note else text
