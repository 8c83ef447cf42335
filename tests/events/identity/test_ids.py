import hashlib
import hmac
from base64 import b32encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.identity.facts import contradict
from events.identity.ids import (
    carrier_code,
    correction_id,
    enrichment_id,
    identify,
    shipment_id,
    value_digest,
)
from events.identity.recipes import discriminator_of, number_of
from events.parsing.times import SHIFTED
from events.spelling import normalize_number
from events.vocabulary import Kind, Status, TimePrecision, TzSource

AT: Final = datetime(2026, 3, 1, 14, 5, tzinfo=timezone(timedelta(hours=-5)))
TIME: Final = PrintedTime(
    printed="20260301 140500",
    instant=AT,
    tz_source=TzSource.PAIR,
    precision=TimePrecision.SECOND,
    identity="20260301T140500",
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
    return identify(reading, carrier_id="ups", digest=digest).facts_digest


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
    expected = hashlib.sha256(
        b"s1\x1ffedex\x1f999900003333\x1f2460001000~999900003333~FX"
    ).digest()[:16]
    assert shipment_id("fedex", "9999 0000 3333", "2460001000~999900003333~FX") == UUID(
        bytes=expected
    )


def test_a_derived_id_is_the_documented_hash() -> None:
    fields = ("d1", "ups", "1ZTEST0003", "", "", "i", "ot", "", "20260301T140500", "são paulo")
    expected = (
        b32encode(hashlib.sha256("\x1f".join(fields).encode()).digest()).decode().lower()[:26]
    )
    assert event_id(READING) == f"d1-260301-{expected}"


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (READING, "d1-260301-2pr2xrfb5ghdooy2o25u6j3lrp"),
        (replace(READING, discriminator="2460001000~1~FX"), "d1-260301-lju7a52fqdfwhhmerqud5t6j3c"),
        (replace(READING, place=EventPlace(city="BONN")), "d1-260301-vmwf73oft6jyshwfaqwn7sr4sb"),
        (replace(READING, place=EventPlace()), "d1-260301-7gz3ivoeshsreyghoczcovebtb"),
        (replace(READING, raw=Raw(code="DL")), "d1-260301-rk7cbcyx4xljzr2nantt2wmzaw"),
        (replace(READING, raw=Raw()), "d1-260301-u4dgjtygenvrc5hkduxxbuknua"),
        (
            replace(
                READING,
                time=replace(
                    TIME, instant=AT.replace(hour=0, minute=0), precision=TimePrecision.DAY
                ),
            ),
            "d1-260301-axbgigtlauwbyjrouh4dxmqoyq",
        ),
        (
            replace(READING, time=replace(TIME, identity="", tz_source=TzSource.RECEIVED)),
            "d1-000000-dygywm4rlbgnccqzyddjrrburi",
        ),
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
        replace(READING, place=READING.place._replace(city="SÃO PAULO")),
        replace(READING, raw=READING.raw._replace(further=(), reason="021")),
        replace(READING, raw=READING.raw._replace(code="ot")),
        replace(READING, place=READING.place._replace(postal_code=None, facility="4709")),
        replace(READING, piece="1"),
        replace(
            READING,
            time=replace(
                TIME,
                instant=AT.replace(tzinfo=UTC),
                tz_source=TzSource.ASSUMED_UTC,
                printed="2026-03-01 14:05:00",
            ),
        ),
        replace(
            READING,
            time=replace(
                TIME, instant=AT.replace(microsecond=120_000), identity="20260301T140500.120000"
            ),
        ),
        # what an id held could be found by trial
        replace(READING, place=READING.place._replace(postal_code="99999")),
    ],
)
def test_what_only_some_envelopes_print_is_the_same_scan(reading: Reading) -> None:
    assert event_id(reading) == event_id(READING)
    assert facts(reading) == b"", "a derived id is its facts"


@pytest.mark.parametrize(
    "reading",
    [
        replace(READING, tracking_number="1ZTEST0004"),
        replace(READING, discriminator="x"),
        replace(READING, raw=Raw(type="X", code="OT")),
        replace(READING, raw=Raw(type="I", code="OF")),
        replace(READING, place=READING.place._replace(city="Santos")),
        replace(
            READING,
            time=replace(TIME, identity="20260301T140501", instant=AT + timedelta(seconds=1)),
        ),
    ],
)
def test_every_fact_distinguishes_scans(reading: Reading) -> None:
    assert event_id(reading) != event_id(READING)
    assert contradict(
        facts(replace(READING, native_id="1")), facts(replace(reading, native_id="1"))
    )


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
def test_a_native_id_stays_within_its_scope(
    native_id: str,
    per_number: bool,  # noqa: FBT001
    expected: str,
) -> None:
    assert (
        event_id(replace(READING, native_id=native_id, native_id_per_number=per_number)) == expected
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"raw": READING.raw._replace(further=("022",))},
        {"piece": "x"},
        {"raw": READING.raw._replace(reason="1")},
    ],
)
def test_further_codes_and_pieces_are_facts_of_a_native_id(changed: dict[str, Any]) -> None:
    native = replace(READING, native_id="5348054")
    assert contradict(facts(native), facts(replace(native, **changed)))


def test_a_part_that_is_not_stated_contradicts_nothing() -> None:
    native = replace(READING, native_id="5348054")
    timeless = replace(native, time=replace(TIME, tz_source=TzSource.RECEIVED, identity=""))
    for vague in (timeless, replace(native, place=EventPlace())):
        assert facts(vague) != facts(native)
        assert not contradict(facts(native), facts(vague))
        assert not contradict(facts(vague), facts(native))


def test_a_postcode_is_no_fact_of_a_native_id() -> None:
    native = replace(READING, native_id="1")
    elsewhere = replace(native, place=READING.place._replace(postal_code="99999"))
    assert facts(native) == facts(elsewhere)


def test_the_time_of_an_identity_is_an_instant_only_where_the_carrier_prints_offsets() -> None:
    utc = replace(
        READING, time=replace(TIME, instant=AT.astimezone(UTC), tz_source=TzSource.EXPLICIT)
    )
    local = replace(READING, time=replace(TIME, tz_source=TzSource.EXPLICIT))
    assert event_id(utc) != event_id(local)
    ids = {
        identify(reading, carrier_id="aftership", digest=digest).event_id
        for reading in (utc, local)
    }
    assert len(ids) == 1


def test_a_zone_that_we_found_has_no_part_in_an_identity() -> None:
    moved = replace(
        TIME, instant=AT.replace(tzinfo=timezone(timedelta(hours=9))), tz_source=TzSource.LOCATION
    )
    for carrier_id in ("ups", "aftership"):
        ids = {
            identify(replace(READING, time=time), carrier_id=carrier_id, digest=digest).event_id
            for time in (moved, replace(TIME, tz_source=TzSource.CARRIER_DEFAULT))
        }
        assert len(ids) == 1


def test_a_wall_clock_that_daylight_saving_skipped_counts_as_printed() -> None:
    skipped = replace(
        TIME,
        identity="20260308T023000",
        flag=SHIFTED,
        instant=AT.replace(month=3, day=8, hour=3, minute=30),
    )
    event = identify(replace(READING, time=skipped), carrier_id="ups", digest=digest)
    assert (event.raw_wall, event.event_id[3:9]) == ("20260308T023000", "260308")
    assert event.event_id != event_id(replace(READING, time=replace(skipped, flag=None)))


MIDNIGHT: Final = replace(TIME, instant=AT.replace(hour=0, minute=0))
TIMELESS: Final = replace(TIME, identity="", printed="", tz_source=TzSource.RECEIVED)


@pytest.mark.parametrize(
    ("time", "again"),
    [
        (MIDNIGHT, replace(MIDNIGHT, identity="20260301", precision=TimePrecision.DAY)),
        (TIMELESS, replace(TIMELESS, instant=AT + timedelta(days=1))),
    ],
    ids=["a bare date and its midnight", "without time, whenever it comes"],
)
def test_two_times_of_the_same_scan(time: PrintedTime, again: PrintedTime) -> None:
    assert event_id(replace(READING, time=time)) == event_id(replace(READING, time=again))
    assert facts(replace(READING, time=time)) == facts(replace(READING, time=again))


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("420 33487 9405 5169 0269 7649 3035 70", "9405516902697649303570"),
        ("420334871234" + "9405516902697649303570", "9405516902697649303570"),
        ("42033487" + "92748902410812000000000017", "92748902410812000000000017"),
        ("9405516902697649303570", "9405516902697649303570"),
        ("4201234567890", "4201234567890"),
    ],
)
def test_a_postcode_in_front_of_a_number_is_no_part_of_it(printed: str, number: str) -> None:
    event = identify(replace(READING, tracking_number=printed), carrier_id="usps", digest=digest)
    assert number_of("usps", printed) == event.tracking_number == number
    assert number_of("usps", number) == number


def test_a_company_that_carries_a_number_does_not_make_it_another_shipment() -> None:
    assert (
        discriminator_of("fedex", "2460001000~1~FX")
        == discriminator_of("fedex", "2460001000~1~FDEG")
        == "2460001000~1"
    )


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
    assert (event.tracking_number, event.carrier_code, event.occurred_at_raw) == (
        "1z test-0003",
        "I/OT",
        "20260301 140500",
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (Raw(code="OC"), "OC"),
        (Raw(code="DL", reason="014"), "DL/014"),
        (Raw(type="DRFT", code="ACT"), "DRFT/ACT"),
        (Raw(type="D"), "D"),
        (Raw(), None),
        (Raw(type="transit", code="The parcel <b>was</b> sorted"), "transit"),
        (Raw(type="transit", code="Die Sendung wurde zugestellt."), "transit"),
        (Raw(code="Out for Delivery"), "Out for Delivery"),
        (Raw(code="Es tut uns leid!"), None),
    ],
)
def test_a_carrier_code_is_joined_as_printed(raw: Raw, expected: str | None) -> None:
    assert carrier_code(raw) == expected


def test_our_own_ids_have_their_prefixes_and_depend_on_every_part() -> None:
    shipment = shipment_id("ups", "1ZTEST0003", "")
    parts = {"field": "signed_by", "value": "MUSTER", "stamp": ""}
    ids = {
        enrichment_id(
            anchor=anchor,
            value=value_digest(shipment_id=shipment, digest=digest, **(parts | change)),
        )
        for anchor in "ab"
        for change in ({}, {"field": "photo"}, {"value": "MAIER"}, {"stamp": "1"})
    }
    assert len(ids) == 8
    assert all(found.startswith("e1-") and len(found) == 29 for found in ids)
    assert correction_id(corrected="a", replaces="", reading="x") != correction_id(
        corrected="a", replaces="b", reading="x"
    )
    assert correction_id(corrected="a", replaces="", reading="x").startswith("c1-")
