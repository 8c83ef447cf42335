"""The clear part of a statement names no person: texts in the place of codes, and the
exact postcode, are sealed.
"""

import hmac
from datetime import UTC, datetime
from typing import Final

import pytest

from events.clear_part import (
    is_stand_in,
    known_texts,
    listed_code,
    looks_like_code,
    postal_prefix,
    restored,
    split,
    stand_in,
)
from events.entry.kinds import Provenance, event_document, leaf, part_bytes
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.identity.ids import identify, shipment_id
from events.vocabulary import Kind, TimePrecision, TzSource

NAME: Final = "Left with Zebedee Quux"
AT: Final = datetime(2026, 3, 1, 14, 5, tzinfo=UTC)


def digest(data: bytes) -> bytes:
    return hmac.digest(b"clear", data, "sha256")


def reading(raw: Raw, place: EventPlace) -> Reading:
    time = PrintedTime(
        printed="20260301 140500",
        instant=AT,
        tz_source=TzSource.EXPLICIT,
        precision=TimePrecision.SECOND,
        identity="20260301T140500",
    )
    return Reading(
        tracking_number="1Z999",
        kind=Kind.UNMAPPED,
        raw=raw,
        time=time,
        place=place,
        native_id="scan-1",
    )


@pytest.mark.parametrize(
    "code",
    [
        "OT",
        "I",
        "out_for_delivery",
        "InTransit",
        "??",
        "e=10",
        "021",
        "urn:epc:id:sgln:0614141.07346.1234",
        "",
    ],
)
def test_a_code_stays_in_clear(code: str) -> None:
    assert looks_like_code(code)


@pytest.mark.parametrize(
    "text",
    [NAME, "Zoë", "+4915112345678", "01511234567", "a@example.test", "x" * 81, "a\u200bb", "'"],
)
def test_a_text_is_replaced_by_a_stand_in(text: str) -> None:
    assert not looks_like_code(text)
    standing = stand_in(text, "ups", digest)
    assert looks_like_code(standing)
    assert is_stand_in(standing)
    assert listed_code(standing) == "text"


def test_the_same_statement_is_split_alike_each_time() -> None:
    for _ in range(2):
        plain = split(Raw(code="OT"), EventPlace(city="Reno"), carrier_id="ups", digest=digest)
        assert (plain.sealed_raw, plain.sealed_place) == (None, None)
        named = split(
            Raw(code=NAME),
            EventPlace(country="US", postal_code="89501"),
            carrier_id="ups",
            digest=digest,
        )
        assert (named.sealed_raw, named.sealed_place) == (
            Raw(code=NAME),
            EventPlace(country="US", postal_code="89501"),
        )


def test_a_text_is_found_again_in_any_spelling_by_its_carrier_alone() -> None:
    spellings = {
        stand_in(text, "ups", digest)
        for text in ("Out for Delivery", "out  for delivery.", "ＯＵＴ FOR DELIVERY")
    }
    assert len(spellings) == 1
    assert spellings != {stand_in("Out for Delivery", "usps", digest)}
    raw = Raw(type="T", code=spellings.pop(), further=(stand_in(NAME, "ups", digest),))
    again = restored(raw, known_texts({"out for delivery"}, "ups", digest))
    assert again == Raw(type="T", code="out for delivery", further=raw.further)


@pytest.mark.parametrize(
    ("country", "postal_code", "prefix"),
    [
        ("US", "89501", "895"),
        ("US", "89501-1234", "895"),
        ("US", "next to the church", None),
        ("CA", "K1N 5T2", "K"),
        ("CA", "k1n", "K"),
        ("GB", "EX33 2JL", "EX"),
        ("GB", "W1A 1AA", "W"),
        ("DE", "10115", "10"),
        ("NL", "1012 AB", "10"),
        ("NG", "23401", None),
        (None, "89501", None),
        ("US", None, None),
    ],
)
def test_a_postcode_leaves_a_coarse_area(
    country: str | None, postal_code: str | None, prefix: str | None
) -> None:
    assert postal_prefix(country, postal_code) == prefix


def test_no_byte_of_a_leaf_holds_what_is_sealed() -> None:
    raw = Raw(type=f"{NAME} 1", code=NAME, reason=f"{NAME} 2", further=("021", f"{NAME} 3"))
    place = EventPlace(
        city="Reno", region="NV", postal_code="89501-7777", country="US", facility=f"{NAME} 4"
    )
    event = identify(reading(raw, place), carrier_id="ups", digest=digest)
    source = Provenance(
        message_id=shipment_id("a", "b", ""),
        body_commitment=bytes(32),
        received_at=AT,
        normalizer="ups",
        normalizer_version="1",
    )
    document = event_document(
        event,
        source=source,
        shipment_id=shipment_id("ups", "1Z999", ""),
        version=1,
        recorded_at=AT,
        previous_hash=bytes(32),
        part_commitment=None,
        signer_digest=None,
    )
    assert document["location"].keys() == {"city", "region", "country", "postal_code", "facility"}
    assert document["location"]["postal_code"] == "895"
    canonical = leaf(document, epoch=1).canonical
    assert b"Zebedee" not in canonical
    assert b"89501" not in canonical
    part = part_bytes(event.personal)
    assert b"89501-7777" in part
    assert part.count(b"Zebedee") == 5


def test_what_is_all_codes_is_not_repeated_in_the_sealed_part() -> None:
    event = identify(
        reading(Raw(type="I", code="OT"), EventPlace(city="Reno", country="US", facility="F7")),
        carrier_id="ups",
        digest=digest,
    )
    assert not event.personal
    assert event.carrier_code == "I/OT"
