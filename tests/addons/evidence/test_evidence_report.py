"""The report answers a clerk on its first page and shows all on record behind it, with nothing that a carrier wrote as markup."""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from events.carriers import CARRIERS
from events.event import EventPlace, Raw
from events.identity.ids import identify
from events.vocabulary import Kind, Status
from statesvc.addons.evidence.code_meanings import code_meaning
from statesvc.addons.evidence.evidence_forms import html_of
from statesvc.addons.evidence.evidence_report import EvidenceReport, StatementLine, report_of
from statesvc.addons.evidence.pdf import print_report
from statesvc.addons.evidence.report_sections import details_of
from statesvc.addons.evidence.summary import EvidenceSummary
from tests.addons.evidence.test_bundle import NUMBER, both, bundle_of, keys_of
from tests.addons.evidence.test_dispute import STATEMENT
from tests.addons.evidence.test_sent import subscribe
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


async def page_of(log: LogBuilder, **wish: Any) -> EvidenceSummary:
    await log.seal()
    bundle = await bundle_of(log, **wish)
    assert both(bundle, keys_of(bundle)) == (True, True)
    return report_of(bundle).summary


async def test_the_head_names_merchant_and_case_and_the_answer_names_number_time_and_signer(
    event_log: LogBuilder,
) -> None:
    await event_log.append(
        scan(NUMBER, 1, Status.PICKED_UP),
        scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"),
    )
    page = await page_of(event_log, statement=STATEMENT)
    assert page.merchant == "Example Sports Ltd"
    assert page.case.startswith("Case dp_1NsHZ2 · reason code 13.1 · made ")
    assert (
        page.verdict
        == "UPS reported parcel 1Z0002 as delivered on 1 March 2026 at 09:10 UTC (1 Mar 2026, 03:10"
        " in Springfield, computed from the place), signed by J. Doe."
    )
    assert [(name, reached) for name, _, _, reached in page.steps] == [
        ("Label made", False),
        ("Picked up", True),
        ("In transit", False),
        ("Out for delivery", False),
        ("Delivered", True),
    ]
    assert page.steps[1][1:3] == ("1 Mar 2026, 08:01 UTC", "Springfield, IL")
    assert ("Place", "Springfield, IL, US") in page.facts
    assert dict(page.stated)["Ship to"].endswith("Evergreen Terrace 742, SPRINGFIELD IL, US")


async def test_a_contradiction_is_named_by_time_place_and_statement(event_log: LogBuilder) -> None:
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED), scan(NUMBER, 550, Status.IN_TRANSIT))
    await event_log.seal()
    report = report_of(await bundle_of(event_log))
    assert report.summary.remarks == [
        (
            "On 1 Mar 2026, 17:10 UTC, 8 h after the delivery, the carrier also reported “in transit:"
            " scanned 550” in Springfield (statement 2). No later statement took the delivery back."
        )
    ]
    assert [(line.number, line.note) for line in report.statements] == [
        (1, ""),
        (2, "contradicts the others: see the first page"),
    ]


async def test_a_delivery_that_was_taken_back_is_said_with_what_it_was_corrected_to(
    event_log: LogBuilder,
) -> None:
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED, native_id="d"))
    correction = scan(
        NUMBER,
        80,
        Status.DELIVERY_ATTEMPTED,
        kind=Kind.CORRECTION,
        corrects="d",
        native_id="undo",
    )
    await event_log.append(correction)
    page = await page_of(event_log)
    assert page.verdict.endswith("It reported no delivery that still stands.")
    (remark,) = page.remarks
    assert remark.startswith(
        "The carrier reported a delivery for 1 Mar 2026, 09:10 UTC (statement 1) and corrected it"
        " to: delivery attempted;"
    )
    assert remark.endswith("(statement 2).")


async def test_a_delivery_that_its_carrier_took_back_without_naming_it_is_said_with_the_statement_that_did(
    event_log: LogBuilder,
) -> None:
    await event_log.append(
        scan(NUMBER, 10, Status.IN_TRANSIT),
        scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"),
    )
    await event_log.append(scan(NUMBER, 80, None, kind=Kind.CORRECTION))
    await event_log.seal()
    report = report_of(await bundle_of(event_log))
    page = report.summary
    assert "signed by" not in page.verdict
    assert (
        dict(page.facts)["Signed by"]
        == "nobody, for a delivery that still stands; J. Doe was named for the one that does not"
    )
    (remark,) = page.remarks
    assert remark.startswith(
        "The carrier reported a delivery for 1 Mar 2026, 09:10 UTC (statement 2) and took it back;"
        " that came on "
    )
    assert remark.endswith("(statement 3).")
    assert report.statements[2].note == "takes back statement 2"


async def test_who_else_signed_is_to_be_weighed(event_log: LogBuilder) -> None:
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"))
    await event_log.append(
        scan(NUMBER, 90, None, kind=Kind.INFO, signed_by="j.  doe"),
        scan(NUMBER, 99, None, kind=Kind.INFO, signed_by="R. Roe"),
    )
    page = await page_of(event_log)
    assert page.verdict.endswith(", signed by J. Doe.")
    assert page.remarks == [
        "The carrier also named another signer: R. Roe, 1 Mar 2026, 09:39 UTC (statement 3)."
    ]


async def test_the_answer_tells_no_delivery_from_one_before_the_return(
    event_log: LogBuilder,
) -> None:
    await event_log.append(
        scan(NUMBER, 10, Status.IN_TRANSIT), scan(NUMBER, 20, None, kind=Kind.INFO)
    )
    under_way = await page_of(event_log)
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED), scan(NUMBER, 700, Status.RETURNED))
    returned = await page_of(event_log)
    assert under_way.verdict.startswith(
        "UPS reported parcel 1Z0002 last as in transit, on 1 March 2026 at 08:10 UTC ("
    )
    assert under_way.verdict.endswith(". It reported no delivery.")
    assert dict(under_way.facts)["Signed by"] == "not stated by the carrier"
    assert returned.verdict.endswith(
        ". Before that it reported a delivery, on 1 March 2026 at 09:10 UTC."
    )
    assert dict(returned.facts)["State"] == "returned"


async def test_a_code_is_said_in_english_and_a_signer_in_the_words_is_not_denied(
    event_log: LogBuilder,
) -> None:
    words = "快件已派送至本人，签收人：张三"
    said = scan(NUMBER, 70, Status.DELIVERED)
    fields = {name: getattr(said, name) for name in ("tracking_number", "kind", "status", "time")}
    reading = type(said)(
        **fields, raw=Raw(code="80"), place=EventPlace(city="深圳市"), description=words
    )
    await event_log.append(reading, carrier_id="sf_express")
    await event_log.seal()
    facts = dict(report_of(await bundle_of(event_log, carrier_id="sf_express")).summary.facts)
    assert facts["Its words"] == f"“{words}”"
    assert facts["Its code"].startswith("80: “")
    assert facts["Its code"].endswith("read as “delivered”")
    assert facts["Signed by"] == "not in a field of its own; see the carrier’s words"


async def test_a_history_that_was_submitted_silently_says_so(event_log: LogBuilder) -> None:
    await subscribe(event_log, name="Shop")
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED), notify=False)
    page = await page_of(event_log)
    assert page.notified == [
        (
            "No system was notified by this service: its history was imported with notifications"
            " switched off."
        )
    ]


@pytest.mark.parametrize(
    ("carrier_id", "raw", "meaning"),
    [
        ("sf_express", Raw(code="80"), "group of operation codes: delivered"),
        ("fedex", Raw(code="DL"), "Delivered"),
        ("fedex", Raw(code="DL", reason="??"), "Delivered"),
        ("canadapost", Raw(code="1496"), "Delivered"),
        (
            "dhl_parcel_de",
            Raw(type="STORN", code="", reason="ST"),
            "The previous event was deleted by driver: ICE Details (DD: Data Service)",
        ),
        (
            "amazon",
            Raw(code="ARRIVED"),
            "The ocean vessel or aircraft arrived at the destination port or airport.",
        ),
        ("fedex", Raw(code="no code of theirs"), None),
        ("canonical", Raw(code="80"), None),
    ],
)
def test_a_code_means_what_the_list_of_its_carrier_says(
    carrier_id: str, raw: Raw, meaning: str | None
) -> None:
    assert code_meaning(carrier_id, raw, "words of the carrier") == meaning
