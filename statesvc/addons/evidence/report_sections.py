"""The sections after the first page with their tables, for the HTML page and the PDF. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from statesvc.addons.evidence import wording as words
from statesvc.addons.evidence.evidence_report import ActionLine, EvidenceReport, StatementLine
from statesvc.addons.evidence.proof_of_delivery import DeliveryProof

_SAID: Final = ("No.", "Happened", "What", "Where", "Recorded", "Entry")
_SAID_WIDTHS: Final = (7, 32, 44, 25, 33, 10)
# Length of a code printed next to its meaning.
_CODE_CHARS_MAX: Final = 16
_NOTIFIED_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A heading and its content. `columns` empty: names and values. `widths`: in proportion.

    `quotes`: a note and a raw text. `begins_page`: the annex, for those who check.
    """

    heading: str
    texts: Sequence[str] = ()
    columns: Sequence[str] = ()
    widths: Sequence[int] = (30, 90)
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[DeliveryProof] = ()
    quotes: Sequence[tuple[str, str]] = field(default_factory=tuple)
    begins_page: bool = False


def details_of(report: EvidenceReport, *, key_only: int | None = None) -> list[ReportSection]:
    """Return the carrier's statements and contradictions.

    `key_only`: at most as many, the key ones first.
    """
    shown = report.statements
    texts = [words.BOTH_CLOCKS]
    zones = {line.zone for line in shown}
    # said once above the table, in place of in every line
    if len(zones) == 1 and (zone := zones.pop()):
        texts.append(words.ONE_ZONE.format(zone=zone))
        shown = [replace(line, zone="") for line in shown]
    if key_only is not None:
        key = [line for line in shown if line.is_key]
        shown = (
            key
            if len(key) <= key_only
            # the first and the last: what lies between is the least disputed
            else [*key[: key_only // 2], *key[-(key_only - key_only // 2) :]]
        )
        texts.append(
            f"Of {len(report.statements):,} statements these {len(shown):,} are the first, the last"
            " and those that moved the state; the annex, a file of its own, has all of them."
        )
    sections = [
        ReportSection(
            heading="All statements of the carrier"
            if key_only is None
            else "Statements of the carrier",
            texts=texts,
            columns=_SAID,
            widths=_SAID_WIDTHS,
            rows=_said(shown),
        )
    ]
    if report.contradictions:
        rows = _said(
            report.contradictions if key_only is None else report.contradictions[:key_only]
        )
        sections.append(
            ReportSection(
                heading="What contradicted it", columns=_SAID, widths=_SAID_WIDTHS, rows=rows
            )
        )
    if report.delivery_proofs:
        texts = [
            (
                "As the carrier pushed them. Their message is an entry's; its body proves"
                " itself in the"
                " JSON file."
            )
        ]
        sections.append(
            ReportSection(
                heading="Pictures of the delivery", texts=texts, pictures=report.delivery_proofs
            )
        )
    notified = [
        (line.at, line.receiver, line.status, line.answer)
        for line in report.notified[: _NOTIFIED_MAX if key_only else None]
    ]
    sections.append(
        ReportSection(
            heading="Which systems were notified",
            texts=[words.TOLD]
            if notified
            else ["None, by this service: there was no subscription to this parcel."],
            columns=("When", "System", "Of the status", "Answer") if notified else (),
            widths=(26, 36, 24, 36),
            rows=notified,
        )
    )
    return sections


def annex_of(report: EvidenceReport) -> list[ReportSection]:
    """Return our conclusions, notifications and actions."""
    concluded = [
        (line.recorded, line.what, line.code, str(line.index)) for line in report.conclusions
    ]
    attempted = [
        (line.at, line.receiver, line.webhook_id, line.answer, str(line.index))
        for line in report.notified
    ]
    sections = [
        ReportSection(
            heading="Annex: what we concluded",
            texts=() if concluded else ["Nothing: no scan changed the state."],
            columns=("Recorded", "State", "Because of", "Entry") if concluded else (),
            widths=(24, 38, 48, 10),
            rows=concluded,
            begins_page=True,
        )
    ]
    if attempted:
        columns = ("Sent", "To", "Id", "Answer", "Entry")
        sections.append(
            ReportSection(
                heading="Attempts by id",
                columns=columns,
                widths=(24, 28, 36, 26, 10),
                rows=attempted,
            )
        )
    if report.bodies:
        quotes = [
            (f"To {one.receiver}, {one.webhook_id}, attempt {one.attempts}", one.text)
            for one in report.bodies
        ]
        sections.append(ReportSection(heading="What was sent, word for word", quotes=quotes))
    sections += [
        ReportSection(
            heading=heading,
            columns=("When", "What", "Entry"),
            widths=(24, 84, 10),
            rows=_done(lines),
        )
        for heading, lines in (
            ("What we noticed", report.observations),
            ("What operators did", report.actions),
        )
        if lines
    ]
    return sections


def verification_of(report: EvidenceReport) -> ReportSection:
    return ReportSection(
        heading="How to verify this",
        texts=words.HOW_TO_VERIFY,
        rows=report.proof,
        quotes=[
            ("The log’s public keys", "\n".join(report.keys)),
            ("The signed head", report.checkpoint),
        ],
    )


def _said(lines: Sequence[StatementLine]) -> list[Sequence[str]]:
    return [
        (
            str(line.number or ""),
            _happened(line),
            _what(line),
            line.where,
            line.recorded,
            str(line.index),
        )
        for line in lines
    ]


def _happened(line: StatementLine) -> str:
    zone = f" ({line.zone})" if line.zone else ""
    return f"{line.occurred}{zone}" + (f"\n{line.there}, computed" if line.there else "")


def _what(line: StatementLine) -> str:
    """Return the text with its code: carriers' codes may be sentences, so they have no column."""
    is_long = len(line.code) > _CODE_CHARS_MAX
    what = line.what if is_long or not line.code else f"{line.what} ({line.code})"
    return "\n".join(filter(None, (what, line.note, f"code: {line.code}" if is_long else "")))


def _done(lines: Sequence[ActionLine]) -> list[Sequence[str]]:
    return [(line.at, line.what, str(line.index)) for line in lines]
