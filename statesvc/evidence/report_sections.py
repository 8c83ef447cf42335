"""The sections that follow the first page: what they are called, and their tables. Once for the HTML page and the PDF. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from statesvc.evidence import wording as words
from statesvc.evidence.evidence_report import ActionLine, EvidenceReport, StatementLine
from statesvc.evidence.proof_of_delivery import DeliveryProof

_SAID: Final = ("Happened", "What", "Where", "Code", "Recorded", "Entry")
_CODE_CHARS_MAX: Final = 16
"""What the column of codes shows in two lines."""
_SAID_WIDTHS: Final = (24, 36, 24, 14, 21, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One heading and what is under it. `columns` empty: the rows are names and values. `widths`: in proportion."""

    heading: str
    texts: Sequence[str] = ()
    columns: Sequence[str] = ()
    widths: Sequence[int] = (30, 90)
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[DeliveryProof] = ()
    quotes: Sequence[tuple[str, str]] = field(default_factory=tuple)


def details_of(report: EvidenceReport, *, key_only: int | None = None) -> list[ReportSection]:
    """What the carrier said, and what contradicts it. `key_only`: at most as many statements, those that matter most first."""
    shown = report.statements
    texts = [words.BOTH_CLOCKS]
    if key_only is not None:
        key = [line for line in shown if line.is_key]
        shown = key if len(key) <= key_only else [*key[: key_only // 2], *key[-(key_only - key_only // 2) :]]
        texts.append(
            f"Of {len(report.statements):,} statements these {len(shown):,} are the first, the last and those that moved the state; "
            "the annex, a file of its own, has all of them."
        )
    sections = [ReportSection(heading="What the carrier said", texts=texts, columns=_SAID, widths=_SAID_WIDTHS, rows=_said(shown))]
    if report.contradictions:
        rows = _said(report.contradictions if key_only is None else report.contradictions[:key_only])
        sections.append(ReportSection(heading="What contradicted it", columns=_SAID, widths=_SAID_WIDTHS, rows=rows))
    if report.delivery_proofs:
        texts = ["As the carrier pushed them. Their message is an entry's; its body proves itself in the JSON file."]
        sections.append(ReportSection(heading="Pictures of the delivery", texts=texts, pictures=report.delivery_proofs))
    return sections


def annex_of(report: EvidenceReport) -> list[ReportSection]:
    """What we concluded, sent and did."""
    concluded = [(line.recorded, line.what, line.code, str(line.index)) for line in report.conclusions]
    attempted = [(line.at, line.receiver, line.what, line.answer, str(line.index)) for line in report.attempts]
    sections = [
        ReportSection(
            heading="What we concluded",
            texts=() if concluded else ["Nothing: no scan changed the state."],
            columns=("Recorded", "State", "Because of", "Entry") if concluded else (),
            widths=(24, 38, 48, 10),
            rows=concluded,
        ),
        ReportSection(
            heading="What was sent, and the answers",
            texts=() if attempted else ["Nothing was sent: there was no subscription to it."],
            columns=("Sent", "To", "What", "Answer", "Entry") if attempted else (),
            widths=(24, 28, 32, 28, 10),
            rows=attempted,
        ),
    ]
    if report.bodies:
        quotes = [(f"To {one.receiver}, {one.webhook_id}, attempt {one.attempts}", one.text) for one in report.bodies]
        sections.append(ReportSection(heading="What was sent, word for word", quotes=quotes))
    sections += [
        ReportSection(heading=heading, columns=("When", "What", "Entry"), widths=(24, 84, 10), rows=_done(lines))
        for heading, lines in (("What we noticed", report.observations), ("What operators did", report.actions))
        if lines
    ]
    return sections


def verification_of(report: EvidenceReport) -> ReportSection:
    """How to check it, against which head."""
    return ReportSection(
        heading="How to verify this", texts=words.HOW_TO_VERIFY, rows=report.proof, quotes=[("The signed head", report.checkpoint)]
    )


def _said(lines: Sequence[StatementLine]) -> list[Sequence[str]]:
    return [(line.occurred, *_what_and_code(line), line.recorded, str(line.index)) for line in lines]


def _what_and_code(line: StatementLine) -> tuple[str, str, str]:
    """Some carriers' codes are whole sentences: these stand under what they mean, the column is narrow."""
    is_long = len(line.code) > _CODE_CHARS_MAX
    what = "\n".join(filter(None, (line.what, line.note, f"code: {line.code}" if is_long else "")))
    return what, line.where, "" if is_long else line.code


def _done(lines: Sequence[ActionLine]) -> list[Sequence[str]]:
    return [(line.at, line.what, str(line.index)) for line in lines]
