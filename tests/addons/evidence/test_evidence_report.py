"""The report on real payloads, as people read it: both clocks, who signed, what was sent, and
nothing that a carrier wrote as markup.
"""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from events.carriers import CARRIERS
from events.identity.ids import identify
from events.vocabulary import Status
from statesvc.addons.evidence.evidence_forms import html_of
from statesvc.addons.evidence.evidence_report import EvidenceReport, StatementLine, report_of
from statesvc.addons.evidence.pdf import print_report
from statesvc.addons.evidence.report_sections import details_of
from statesvc.addons.evidence.summary import EvidenceSummary
from tests.addons.evidence.test_bundle import NUMBER, bundle_of
from tests.world.log_builder import MORNING, LogBuilder, scan

FIXTURES = Path(__file__).parents[2] / "events" / "carriers" / "fixtures"


async def _payload(log: LogBuilder, carrier_id: str, body: bytes) -> str:
    """Say what a normalizer reads of a payload as its carrier would."""
    carrier = CARRIERS[carrier_id]
    readings = carrier.normalizers[carrier.stable](body, MORNING).readings
    await log.append(*readings, carrier_id=carrier_id)
    return identify(
        readings[0], carrier_id=carrier_id, digest=log.keyring.carrier_digest(carrier_id)
    ).tracking_number


@pytest.mark.usefixtures("own_processes")
async def test_a_report_shows_both_clocks_the_signer_and_the_address(event_log: LogBuilder) -> None:
    await event_log.parcel(NUMBER)
    await event_log.append(
        scan(
            NUMBER,
            70,
            Status.DELIVERED,
            signed_by="J. Doe",
            delivery_address="Zanzibar Lane 77",
        )
    )
    await event_log.seal()
    report = report_of(await bundle_of(event_log))
    withheld = report_of(await bundle_of(event_log, personal=False))
    facts = dict(report.summary.facts)
    assert (facts["Signed by"], facts["Address"], facts["Its code"]) == (
        "J. Doe",
        "Zanzibar Lane 77",
        "T/X1: read as “delivered”",
    )
    assert [one.occurred for one in report.statements][:2] == [
        "1 Mar 2026, 08:00 UTC",
        "1 Mar 2026, 08:01 UTC",
    ]
    assert all(one.recorded.endswith(" UTC") for one in report.statements)
    assert len(report.conclusions) == 5
    assert "J. Doe" not in html_of(withheld).decode()
    assert print_report(report).document.content.startswith(b"%PDF-")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("carrier_id", ["ups", "fedex", "dhl_unified"])
async def test_real_shapes_make_a_legible_document(event_log: LogBuilder, carrier_id: str) -> None:
    body = next(
        path.read_bytes()
        for path in sorted((FIXTURES / carrier_id).iterdir())
        if path.suffix in {".json", ".xml"} and "expected" not in path.name
    )
    number = await _payload(event_log, carrier_id, body)
    await event_log.seal()
    bundle = await bundle_of(event_log, number, carrier_id=carrier_id)
    report = report_of(bundle)
    html = html_of(report).decode()
    for one in report.statements:
        assert one.occurred in unescape(html)
    assert report.checkpoint.split("\n")[0] in html
    assert print_report(report).document.pages <= 3
    assert json.loads(json.dumps(bundle)) == bundle


def test_a_code_that_is_a_sentence_stands_under_what_it_means() -> None:
    line = StatementLine(
        index=7,
        occurred="t",
        recorded="r",
        what="in transit",
        where="Stow",
        code="transit/ARRIVAL DESTINATION",
        note="late",
    )
    report = EvidenceReport(
        title="",
        reference="",
        made_at="",
        summary=EvidenceSummary(lead=()),
        statements=[line, replace(line, code="I/AR", note="")],
    )
    assert details_of(report)[0].rows == [
        ("", "t", "in transit\nlate\ncode: transit/ARRIVAL DESTINATION", "Stow", "r", "7"),
        ("", "t", "in transit (I/AR)", "Stow", "r", "7"),
    ]
