from datetime import UTC, datetime

import pytest

from events.carriers.contradictions import without_contradictions
from events.event import Normalized, PrintedTime, Raw, Reading
from events.vocabulary import Kind, Status, TimePrecision, TzSource

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIME = PrintedTime(
    printed="2026-03-01T12:00:00Z",
    instant=NOW,
    tz_source=TzSource.EXPLICIT,
    precision=TimePrecision.SECOND,
    identity="20260301T120000",
)


def scan(status: Status, text: str | None, raw: Raw) -> Reading:
    return Reading(
        tracking_number="1", kind=Kind.SCAN, status=status, raw=raw, time=TIME, description=text
    )


def read(carrier: str, reading: Reading) -> Reading:
    return Normalized(readings=tuple(without_contradictions([reading], carrier))).readings[0]


@pytest.mark.parametrize(
    ("status", "text", "stated"),
    [
        (Status.EXCEPTION, "Unclaimed/Being Returned to Sender", Status.RETURNING),
        (Status.RETURNING, "<b>Delivered</b>", Status.DELIVERED),
    ],
)
def test_a_scan_whose_whole_text_states_another_status_is_unmapped(
    status: Status, text: str, stated: Status
) -> None:
    found = read("ups", scan(status, text, Raw(code="QQ")))
    assert (found.kind, found.status, found.contradicted) == (Kind.UNMAPPED, None, stated)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.DELIVERED, None),
        (Status.DELIVERED, "Delivered"),
        (Status.RETURNED, "Delivered"),
        (Status.IN_TRANSIT, "Delivered"),
        (Status.EXCEPTION, "Delivery attempted, then something else happened"),
    ],
)
def test_a_text_that_says_no_other_status_leaves_the_code_alone(
    status: Status, text: str | None
) -> None:
    reading = scan(status, text, Raw(code="QQ"))
    assert read("ups", reading) == reading


def test_a_text_in_place_of_a_code_contradicts_nothing() -> None:
    reading = scan(Status.EXCEPTION, "Delivery Attempted", Raw())
    assert read("ups", reading) == reading


def test_a_text_that_the_public_list_prints_for_the_code_contradicts_nothing() -> None:
    not_delivered = scan(Status.EXCEPTION, "Not delivered", Raw(code="ND"))
    assert read("dhl_express", not_delivered) == not_delivered
    assert read("ups", not_delivered).contradicted is Status.DELIVERY_ATTEMPTED
