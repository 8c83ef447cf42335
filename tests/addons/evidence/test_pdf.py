"""The PDF: any script, never more than 18 pages, and nothing that a carrier wrote as more than
text.
"""

import base64
import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from pypdf import PdfReader

from statesvc.addons.evidence.evidence_report import EvidenceReport, StatementLine
from statesvc.addons.evidence.pdf import PAGES_MAX, PrintedPages, annex_pages, print_report
from statesvc.addons.evidence.proof_of_delivery import DeliveryProof
from statesvc.addons.evidence.summary import EvidenceSummary
from tests.evidence_fonts import FONTS, printed_by, spans

pytestmark = pytest.mark.usefixtures("own_processes")

SCRIPTS = (
    "快件已签收",
    "수령 완료",
    "ส่งสำเร็จ",
    "تم التسليم",
    "मुंबई में",
    "נמסר",
    "Доставлено",
    "Παραδόθηκε",
    "配達完了です",
    "Đã giao hàng",
)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
    "=="
)


def line(index: int, what: str = "in transit: scanned", *, is_key: bool = False) -> StatementLine:
    return StatementLine(
        index=index,
        occurred="2026-03-01 08:00 UTC-05:00",
        recorded="2026-03-01 13:00:00 UTC",
        what=what,
        where="Springfield, IL, US",
        code="T/X1",
        is_key=is_key,
    )


def report(*lines: StatementLine, **summary: Any) -> EvidenceReport:
    summary = {
        "lead": [
            ("The carrier reported this parcel as ", False),
            ("delivered", True),
            (".", False),
        ],
        "facts": [("Carrier", "UPS")],
        **summary,
    }
    return EvidenceReport(
        title="Proof of delivery",
        reference="UPS 1Z",
        made_at="2026-03-02T00:00:00+00:00",
        summary=EvidenceSummary(**summary),
        statements=lines,
    )


def text_of(pages: PrintedPages, *places: int) -> str:
    """Return the text of all pages, or of those at these indexes."""
    reader = PdfReader(io.BytesIO(pages.content))
    assert len(reader.pages) == pages.pages
    text = " ".join(reader.pages[place].extract_text() for place in places or range(pages.pages))
    return " ".join(text.split())


def test_all_scripts_are_printed_and_what_no_font_has_by_its_code_point() -> None:
    printed = print_report(
        report(
            *(line(place, script) for place, script in enumerate(SCRIPTS)),
            line(99, "a \U0001f4e6 b"),
        )
    )
    text = text_of(printed.document)
    for script in ("快件已签收", "수령", "Доставлено", "Παραδόθηκε", "配達完了です"):
        assert script in text
    assert "[U+1F4E6]" in text
    assert text.count("[U+") == 1, "each of the scripts has its glyphs"


def test_no_character_can_make_a_line_read_otherwise() -> None:
    text = text_of(print_report(report(line(0, "signed by \u202eeoD nhoJ"))).document)
    assert "[U+202E]eoD nhoJ" in text


def test_codes_keys_and_signatures_stay_in_one_piece() -> None:
    key, signature = (
        "log.example/1992c1e7+48040a75+ASdHkYPx6ak45chhgjvN60W+DCb8I40GTjX5uv3A8OU5",
        "zAiBh/" * 17 + "==",
    )
    stated = replace(line(0, "out for delivery: on its way"), code="OUT_FOR_DELIVERY")
    printed = print_report(replace(report(stated), keys=[key], checkpoint=signature))
    text = text_of(printed.document)
    for piece in ("(OUT_FOR_DELIVERY)", key, signature):
        assert piece in text


def test_the_zone_of_all_statements_is_said_once() -> None:
    home = "carrier's home zone"
    alike = text_of(
        print_report(report(*(replace(line(index), zone=home) for index in range(3)))).document
    )
    unlike = text_of(print_report(report(replace(line(0), zone=home), line(1))).document)
    assert (alike.count(home), unlike.count(f"({home})")) == (1, 1)
    assert f"Zone of all times below: {home}." in alike


def test_the_table_of_what_the_fonts_print_is_theirs() -> None:
    with (FONTS / "coverage.csv").open(encoding="ascii") as file:
        stated = [(int(row["first"], 16), int(row["last"], 16)) for row in csv.DictReader(file)]
    assert stated == list(spans(printed_by(FONTS.glob("*.ttf"))))


@pytest.mark.parametrize(
    "markup",
    [
        "#panic()",
        "*bold* _it_ $x^2$ `code` @ref <label>",
        "= Heading\n- list",
        "\\u{1F4E6} // gone",
    ],
)
def test_markup_stays_text(markup: str) -> None:
    text = text_of(print_report(report(line(0, markup))).document)
    for word in markup.split():
        assert word in text


@pytest.mark.parametrize("words", ["in transit", "long " * 80])
def test_thousands_are_a_short_document_and_an_annex_with_all_of_them(words: str) -> None:
    lines = [
        line(index, f"{words} {index}.", is_key=index % 10 == 0)
        for index in range(1_200 if len(words) < 20 else 120)
    ]
    printed, annex = print_report(report(*lines)), annex_pages(report(*lines))
    assert (printed.document.pages <= PAGES_MAX, printed.has_annex) == (True, True)
    assert "the annex, a file of its own, has all of them" in text_of(printed.document, 1)
    first, last = text_of(annex, 0), text_of(annex, -4, -3, -2, -1)
    assert f"{words.strip()} 0." in first
    assert f" {len(lines) - 1}." in last
    assert annex.pages > PAGES_MAX


def test_the_summary_stays_on_its_page_and_what_does_not_fit_is_cut_behind_a_clause() -> None:
    facts = [(f"Fact {number}", "many words " * 20) for number in range(12)]
    remark = "On 12 Jul 2019 the carrier also reported “in transit” (statement 7). " * 5
    document = print_report(
        report(line(0), facts=facts, stated=facts, remarks=[remark] * 4)
    ).document
    assert document.summary_page <= 2
    assert document.pages <= PAGES_MAX
    assert "(statement 7). …" in text_of(document, 0)


def test_a_picture_is_printed_and_one_that_cannot_be_read_is_left_out() -> None:
    def pictured(image: bytes) -> int:
        proof = DeliveryProof("photograph", "m", image=image, image_format="png")
        printed = print_report(replace(report(line(0)), delivery_proofs=[proof]))
        return sum(
            len(page.images) for page in PdfReader(io.BytesIO(printed.document.content)).pages
        )

    assert (pictured(PIXEL), pictured(PIXEL[:30])) == (1, 0)
