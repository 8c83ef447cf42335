"""Real carriers' events after their message was erased: corrected by their codes, or reported where
a text would be needed.
"""

from typing import Any

import pytest

from events.carriers import CARRIERS
from statesvc.reading.code_mapping import Mappings
from statesvc.repair.renormalize.correction_plan import RenormalizeReport, plan_unread
from statesvc.repair.renormalize.effective_readings import effective_readings


def logged(carrier_id: str, status: str | None, **raw: str) -> dict[str, Any]:
    return {
        "carrier_id": carrier_id,
        "event_id": "d1-260301-a",
        "tracking_number": "1",
        "kind": "scan" if status else "unmapped",
        "occurred_at": "2026-03-01T08:00:00+00:00",
        "tz_source": "explicit",
        "time_precision": "second",
        "status": status,
        "normalizer": carrier_id,
        "raw": raw,
    }


@pytest.mark.parametrize(
    ("carrier_id", "misread", "raw", "now"),
    [
        ("ups", "in_transit", {"type": "I", "code": "OT"}, "out_for_delivery"),
        ("ups", None, {"type": "D", "code": "FS"}, "delivered"),
        ("fedex", "exception", {"code": "DE", "reason": "08"}, "delivery_attempted"),
        ("dhl_express", "delivered", {"code": "NH"}, "delivery_attempted"),
        ("usps", "in_transit", {"code": "OF"}, "out_for_delivery"),
        ("hermes", None, {"code": "3500"}, "delivered"),
    ],
)
def test_what_its_codes_alone_say_corrects_an_event(
    carrier_id: str, misread: str | None, raw: dict[str, str], now: str
) -> None:
    report = RenormalizeReport()
    (correction,) = plan_unread(
        effective_readings([logged(carrier_id, misread, **raw)]),
        CARRIERS[carrier_id],
        Mappings(),
        report,
    )
    assert (correction.status, correction.corrects, report.corrected) == (now, "d1-260301-a", 1)


@pytest.mark.parametrize(
    ("carrier_id", "raw"),
    [
        ("ups", {"type": "I", "code": "DS"}),
        ("usps", {"code": "01"}),
        ("canadapost", {"code": "INDUCTION"}),
        ("purolator", {"code": "Other"}),
        ("easypost", {"type": "in_transit", "code": "delivery_exception"}),
        ("17track", {"code": "e=10"}),
        ("australiapost", {}),
        ("dhl_unified", {"type": "transit", "code": "OK"}),
    ],
)
def test_where_more_than_the_codes_counts_an_event_is_reported_and_stands(
    carrier_id: str, raw: dict[str, str]
) -> None:
    report = RenormalizeReport()
    assert (
        plan_unread(
            effective_readings([logged(carrier_id, "in_transit", **raw)]),
            CARRIERS[carrier_id],
            Mappings(),
            report,
        )
        == []
    )
    assert (report.unreadable, report.corrected) == (1, 0)
