import hashlib
import hmac
from base64 import b32encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.identity import (
    carrier_code,
    correction_id,
    enrichment_id,
    facts_digest,
    identify,
    normalize_number,
    shipment_id,
)
from events.vocabulary import Kind, Status, TimePrecision, TzSource

AT: Final = datetime(2026, 3, 1, 14, 5, tzinfo=timezone(timedelta(hours=-5)))
TIME: Final = PrintedTime(
    printed="20260301 140500", instant=AT, tz_source=TzSource.PAIR, precision=TimePrecision.SECOND, identity="20260301T140500"
)
READING: Final = Reading(
    tracking_number=" 1z test-0003 ",
    kind=Kind.SCAN,
    raw=Raw(type="I", code="OT", further=("021",)),
    time=TIME,
    place=EventPlace(city="São  Paulo", region="SP", postal_code="01000", country="BR"),
    status=Status.OUT_FOR_DELIVERY,
    description="Out For Delivery",
)


def digest(value: bytes) -> bytes:
    return hmac.digest(b"k" * 32, value, "sha256")


def event_id(reading: Reading) -> str:
    return identify(reading, carrier_id="ups", digest=digest).event_id


def facts(reading: Reading) -> bytes:
    return facts_digest(identify(reading, carrier_id="ups", digest=digest), digest)


@pytest.mark.parametrize(
    "printed",
    [
        "1z204w4r0308071865",
        " 1Z204W4R0308071865 ",
        "1Z 204W-4R 0308 0718 65",
        "１Ｚ２０４Ｗ４Ｒ０３０８０７１８６５",
        "1Z204W4R0308071865\u200b",
    ],
)
def test_spellings_of_a_number_are_one_number(printed: str) -> None:
    assert normalize_number(printed) == "1Z204W4R0308071865"


@given(st.text(max_size=40))
def test_a_normal_number_stays_as_it_is(printed: str) -> None:
    assert normalize_number(normalize_number(printed)) == normalize_number(printed)


def test_a_shipment_id_is_the_documented_hash() -> None:
    expected = hashlib.sha256(b"s1\x1ffedex\x1f999900003333\x1f2460001000~999900003333~FX").digest()[:16]
    assert shipment_id("fedex", "9999 0000 3333", "2460001000~999900003333~FX") == UUID(bytes=expected)


def test_a_derived_id_is_the_documented_hash() -> None:
    fields = ("d1", "ups", "1ZTEST0003", "", "I", "OT", "", "20260301T140500", "01000|são paulo|sp|br")
    expected = b32encode(hashlib.sha256("\x1f".join(fields).encode()).digest()).decode().lower()[:26]
    assert event_id(READING) == f"d1-260301-{expected}"


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (READING, "d1-260301-zgha542nefiuc52y2vjdlkxtds"),
        (replace(READING, discriminator="2460001000~1~FX", piece="P1"), "d1-260301-mjvqzjkhrx2tk3kx5rnmfc5fpg"),
        (replace(READING, piece="P1"), "d1-260301-hoam6kqnb25r7cycn55uypkinm"),
        (replace(READING, place=EventPlace(city="BONN", facility="Depot  7")), "d1-260301-y5llahnjknwazpuhyxvbihwigz"),
        (replace(READING, place=EventPlace()), "d1-260301-4nnubcb4rtkvv2s2tgbhdl3tkl"),
        (replace(READING, raw=Raw(code="DL", reason="014")), "d1-260301-xjhqdbxlpdcn7lmfcurlfwaohq"),
        (replace(READING, raw=Raw()), "d1-260301-53zrw4fm6otws6jfodhlxtdnf3"),
        (replace(READING, time=replace(TIME, identity="20260301T140500.120000")), "d1-260301-g7mmfmia3by46mvno3symrrhgy"),
        (replace(READING, time=replace(TIME, identity="", tz_source=TzSource.RECEIVED)), "d1-000000-exjbfevk2qtvk3ssglu7elbbfc"),
    ],
)
def test_derived_ids_never_change(reading: Reading, expected: str) -> None:
    assert event_id(reading) == expected


@pytest.mark.parametrize(
    "reading",
    [
        replace(READING, description="Heute in Zustellung"),
        replace(READING, signed_by="MUSTER", estimated_delivery="2026-03-02", stamp="1"),
        replace(READING, status=Status.IN_TRANSIT, kind=Kind.INFO, by_category=True),
        replace(READING, tracking_number="1ZTEST0003"),
        replace(READING, place=replace(READING.place, city="SÃO PAULO")),
        replace(READING, raw=replace(READING.raw, further=())),
        replace(READING, time=replace(TIME, instant=AT.replace(tzinfo=UTC), tz_source=TzSource.ASSUMED_UTC, printed="2026-03-01 14:05:00")),
    ],
)
def test_rewording_enrichment_and_another_offset_are_the_same_scan(reading: Reading) -> None:
    assert event_id(reading) == event_id(READING)
    assert facts(reading) == facts(READING)


@pytest.mark.parametrize(
    "reading",
    [
        replace(READING, tracking_number="1ZTEST0004"),
        replace(READING, discriminator="x"),
        replace(READING, piece="x"),
        replace(READING, raw=Raw(type="X", code="OT")),
        replace(READING, raw=Raw(type="I", code="OF")),
        replace(READING, raw=Raw(type="I", code="OT", reason="1")),
        replace(READING, place=replace(READING.place, city="Santos")),
        replace(READING, time=replace(TIME, identity="20260301T140501", instant=AT + timedelta(seconds=1))),
    ],
)
def test_every_fact_distinguishes_scans(reading: Reading) -> None:
    assert event_id(reading) != event_id(READING)
    assert facts(reading) != facts(READING)


def test_a_description_counts_only_where_there_is_no_code() -> None:
    wordless = replace(READING, raw=Raw())
    assert event_id(replace(wordless, description="OUT  for delivery")) == event_id(wordless)
    assert event_id(replace(wordless, description="Delivered")) != event_id(wordless)


@pytest.mark.parametrize(
    ("native_id", "per_number", "expected"),
    [
        ("5348054", False, "5348054"),
        ("5348054", True, "5348054@1ZTEST0003"),
        ("d1-260301-x", False, "n-d1-260301-x"),
        ("e1-x", True, "n-e1-x@1ZTEST0003"),
        ("d2-x", False, "d2-x"),
    ],
)
def test_a_native_id_stays_within_its_scope(native_id: str, per_number: bool, expected: str) -> None:  # noqa: FBT001
    assert event_id(replace(READING, native_id=native_id, native_id_per_number=per_number)) == expected


def test_further_codes_are_facts_of_a_native_id() -> None:
    native = replace(READING, native_id="5348054")
    assert facts(native) != facts(replace(native, raw=replace(native.raw, further=("022",))))


def test_a_scan_without_time_is_the_same_whenever_it_comes() -> None:
    early, late = (
        replace(READING, time=replace(TIME, identity="", printed="", tz_source=TzSource.RECEIVED, instant=AT + timedelta(days=days)))
        for days in (0, 1)
    )
    assert event_id(early) == event_id(late)
    assert facts(early) == facts(late)


@pytest.mark.parametrize("number", [None, "", " - "])
def test_an_event_without_number_is_refused_unless_only_looked_at(number: str | None) -> None:
    reading = replace(READING, tracking_number=number)
    with pytest.raises(UnreadableMessageError) as refusal:
        event_id(reading)
    assert refusal.value.cause is Cause.NO_TRACKING_NUMBER
    assert identify(reading, carrier_id="ups", digest=digest, allow_unnumbered=True).event_id


@pytest.mark.parametrize(
    "reading",
    [
        replace(READING, tracking_number="9" * 3000),
        replace(READING, native_id="9" * 3000),
        replace(READING, native_id="1", raw=Raw(code="9" * 3000)),
    ],
)
def test_names_too_long_for_a_key_are_refused(reading: Reading) -> None:
    with pytest.raises(UnreadableMessageError) as refusal:
        event_id(reading)
    assert refusal.value.cause is Cause.TOO_COMPLEX


def test_an_event_keeps_what_was_printed() -> None:
    event = identify(READING, carrier_id="ups", digest=digest)
    assert (event.tracking_number, event.carrier_code, event.occurred_at_raw) == ("1z test-0003", "I/OT", "20260301 140500")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (Raw(code="OC"), "OC"),
        (Raw(code="DL", reason="014"), "DL/014"),
        (Raw(type="DRFT", code="ACT"), "DRFT/ACT"),
        (Raw(type="D"), "D"),
        (Raw(), None),
    ],
)
def test_a_carrier_code_is_joined_as_printed(raw: Raw, expected: str | None) -> None:
    assert carrier_code(raw) == expected


def test_our_own_ids_have_their_prefixes_and_depend_on_every_part() -> None:
    shipment = shipment_id("ups", "1ZTEST0003", "")
    parts = {"anchor": "a", "field": "signed_by", "value": "MUSTER", "stamp": ""}
    ids = {
        enrichment_id(shipment_id=shipment, digest=digest, **(parts | change))
        for change in ({}, {"anchor": "b"}, {"field": "photo"}, {"value": "MAIER"}, {"stamp": "1"})
    }
    assert len(ids) == 5
    assert all(found.startswith("e1-") and len(found) == 29 for found in ids)
    assert correction_id(corrected="a", replaces="", reading="x") != correction_id(corrected="a", replaces="b", reading="x")
    assert correction_id(corrected="a", replaces="", reading="x").startswith("c1-")
