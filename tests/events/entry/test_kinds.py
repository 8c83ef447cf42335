"""Entries: their kinds and canonical bytes."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from events.entry.canonical_json import canonical_bytes
from events.entry.kinds import (
    NO_PREVIOUS,
    Provenance,
    action_document,
    attempt_document,
    event_document,
    fanout_document,
    leaf,
    observation_document,
    part_bytes,
    transition_document,
    try_document,
)
from events.event import Event, EventPlace, Personal, Raw
from events.identity.ids import numbered
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

AT = datetime(2026, 3, 1, 14, 5, tzinfo=timezone(timedelta(hours=-5)))
RECORDED = datetime(2026, 3, 1, 19, 6, 0, 123456, tzinfo=UTC)
SHIPMENT = UUID("00112233-4455-6677-8899-aabbccddeeff")
MESSAGE = UUID("ffeeddcc-bbaa-9988-7766-554433221100")
SOURCE = Provenance(
    message_id=MESSAGE,
    body_commitment=bytes(range(32)),
    received_at=RECORDED,
    normalizer="ups",
    normalizer_version="1",
)
FULL = Event(
    carrier_id="ups",
    event_id="d1-260301-abc",
    tracking_number="1Z 999",
    discriminator="2",
    numbered=numbered("ups", "1Z 999", "2"),
    kind=Kind.SCAN,
    occurred_at=AT,
    occurred_at_raw="20260301 140500",
    tz_source=TzSource.PAIR,
    time_precision=TimePrecision.SECOND,
    status=Status.EXCEPTION,
    reason=Reason.WEATHER,
    carrier_code="X/WX/9",
    raw=Raw(type="X", code="WX", reason="9", further=("011",)),
    raw_zone="-05:00",
    location=EventPlace(city="Übach", region="NW", postal_code="52", country="DE", facility="7"),
    piece="1",
    by_category=True,
    time_flag="ambiguous",
    estimated_delivery="2026-03-05",
    corrects="d1-260301-abd",
    anchor="d1-260301-abe",
    stamp="7",
    personal=Personal(description='Said "so"', signed_by="A"),
)
BARE = Event(
    carrier_id="ups",
    event_id="d1-000000-abc",
    tracking_number="1Z999",
    discriminator="",
    numbered=numbered("ups", "1Z999", ""),
    kind=Kind.UNMAPPED,
    occurred_at=RECORDED,
    occurred_at_raw="",
    tz_source=TzSource.RECEIVED,
    time_precision=TimePrecision.SECOND,
    status=None,
    reason=None,
    carrier_code=None,
    raw=Raw(),
    raw_zone=None,
    location=EventPlace(),
)

GOLDEN_FULL = (
    '{"anchor":"d1-260301-abe","body_commitment":"000102030405060708090a0b0c0d0e0f10111213141516171'
    '8191a1b1c1d1e1f","by_category":true,"carrier_code":"X/WX/9","carrier_id":"ups",'
    '"corrects":"d1-260301-abd","discriminator":"2","entry":"event",'
    '"estimated_delivery":"2026-03-05","event_id":"d1-260301-abc","format":1,"kind":"scan",'
    '"location":{"city":"Übach","country":"DE","facility":"7","postal_code":"52","region":"NW"},'
    '"message_id":"ffeeddcc-bbaa-9988-7766-554433221100","normalizer":"ups",'
    '"normalizer_version":"1","occurred_at":"2026-03-01T14:05:00-05:00",'
    '"part_commitment":"0202020202020202020202020202020202020202020202020202020202020202",'
    '"piece":"1","previous_hash":"0101010101010101010101010101010101010101010101010101010101010101"'
    ',"raw":{"code":"WX","further":["011"],"reason":"9","time":"20260301'
    ' 140500","type":"X","zone":"-05:00"},"reason":"weather",'
    '"received_at":"2026-03-01T19:06:00.123456+00:00","recorded_at":"2026-03-01T19:06:00.123456+00:'
    '00","shipment_id":"00112233-4455-6677-8899-aabbccddeeff",'
    '"signer_digest":"03030303030303030303030303030303","stamp":"7","status":"exception",'
    '"time_flag":"ambiguous","time_precision":"second","tracking_number":"1Z'
    ' 999","tz_source":"pair","version":3}'
).encode()
GOLDEN_BARE = (
    b'{"body_commitment":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",'
    b'"by_category":false,"carrier_id":"'
    b'ups","discriminator":"","entry":"event","event_id":"d1-000000-abc","format":1,'
    b'"kind":"unmapped","location":{},"message_i'
    b'd":"ffeeddcc-bbaa-9988-7766-554433221100","normalizer":"ups","normalizer_version":"1",'
    b'"occurred_at":"2026-03-01T19:06:00'
    b'.123456+00:00","previous_hash":"0000000000000000000000000000000000000000000000000000000000000'
    b'000","raw":{"time":""},"rec'
    b'eived_at":"2026-03-01T19:06:00.123456+00:00","recorded_at":"2026-03-01T19:06:00.123456+00:'
    b'00","shipment_id":"00112233-44'
    b'55-6677-8899-aabbccddeeff","stamp":"","time_precision":"second","tracking_number":"1Z999",'
    b'"tz_source":"received","versio'
    b'n":3}'
)
GOLDEN_TRANSITION = (
    b'{"entry":"transition","event_id":"d1-260301-abc","format":1,"from":"unknown",'
    b'"message_id":"ffeeddcc-bbaa-9988-7766-55443'
    b'3221100","recorded_at":"2026-03-01T19:06:00.123456+00:00","sequence":3,'
    b'"shipment_id":"00112233-4455-6677-8899-aabbccddee'
    b'ff","to":"in_transit","worker":"worker-1"}'
)
GOLDEN_ACTION = (
    b'{"actor":"cli:ops","details":{"why":"a'
    b' test"},"entry":"action","format":1,"recorded_at":"2026-03-01T19:06:00.123456+00:00",'
    b'"target":"carrier'
    b' ups","verb":"hold"}'
)

GOLDEN_FANOUT = (
    b'{"entry":"fanout","event":"0404040404040404040404040404040404040404040404040404040404040404",'
    b'"format":1,"from":"unknown","reco'
    b'rded_at":"2026-03-01T19:06:00.123456+00:00","sequence":3,'
    b'"shipment_id":"00112233-4455-6677-8899-aabbccddeeff","subscriptions":['
    b'"00000000-0000-0000-0000-000000000001","00000000-0000-0000-0000-000000000002"],'
    b'"to":"in_transit"}'
)
GOLDEN_ATTEMPT = (
    b'{"covers":[{"sequence":1},{"sequence":2,"tries":[{"body_commitment":'
    b'"0606060606060606060606060606060606060606060606060606060606'
    b'060606","duration_ms":9,"number":1,"outcome":"timed_out",'
    b'"started_at":"2026-03-01T19:06:00.123456+00:00"}]}],"entry":"attempt",'
    b'"format":1,"gap":{"from_sequence":1,"skipped":2,"to_sequence":2},"outcome":"delivered",'
    b'"part_commitment":"020202020202020202020'
    b'2020202020202020202020202020202020202020202","recorded_at":"2026-03-01T19:06:00.123456+00:'
    b'00","sequence":3,"shipment_id":"00112'
    b'233-4455-6677-8899-aabbccddeeff","subscription_id":"00000000-0000-0000-0000-000000000001",'
    b'"tries":[{"body_commitment":"05050505'
    b'05050505050505050505050505050505050505050505050505050505","duration_ms":12,"number":1,'
    b'"outcome":"delivered","started_at":"2026-'
    b'03-01T19:06:00.123456+00:00","status_code":204}],"webhook_id":"n1-abc"}'
)
GOLDEN_OBSERVATION = (
    b'{"details":{"rule":"stalled_for","seconds":259200},"entry":"observation","format":1,'
    b'"kind":"stalled","recorded_at":"2026-03-01T1'
    b'9:06:00.123456+00:00","shipment_id":"00112233-4455-6677-8899-aabbccddeeff",'
    b'"since":"2026-03-01T19:05:00+00:00","version":3}'
)


NOTHING_SEALED: dict[str, Any] = {
    "previous_hash": NO_PREVIOUS,
    "part_commitment": None,
    "signer_digest": None,
}
EVERYTHING: dict[str, Any] = {
    "previous_hash": b"\x01" * 32,
    "part_commitment": b"\x02" * 32,
    "signer_digest": b"\x03" * 16,
}


@pytest.mark.parametrize(
    ("event", "bound", "epoch", "golden"),
    [
        (FULL, EVERYTHING, 1, GOLDEN_FULL),
        (BARE, NOTHING_SEALED, 1, GOLDEN_BARE),
        (
            replace(BARE, service="UPS Ground"),
            NOTHING_SEALED,
            1,
            GOLDEN_BARE.replace(b'"shipment_id"', b'"service":"UPS Ground","shipment_id"'),
        ),
        (
            BARE,
            NOTHING_SEALED,
            2,
            GOLDEN_BARE.replace(b'"entry":"event",', b'"entry":"event","epoch":2,'),
        ),
    ],
    ids=["every field", "no optional field", "a service adds its member", "a later epoch"],
)
def test_an_event_has_its_landed_bytes(
    event: Event, bound: dict[str, Any], epoch: int, golden: bytes
) -> None:
    document = event_document(
        event, source=SOURCE, shipment_id=SHIPMENT, version=3, recorded_at=RECORDED, **bound
    )
    assert leaf(document, epoch=epoch).canonical == golden


def test_an_entry_of_a_later_epoch_has_another_leaf_hash() -> None:
    document = action_document(
        actor="cli:ops",
        verb="hold",
        target="carrier ups",
        details={"why": "a test"},
        recorded_at=RECORDED,
    )
    first, second = leaf(document, epoch=1), leaf(document, epoch=2)
    assert first.canonical == GOLDEN_ACTION
    assert (
        first.leaf_hash.hex() == "2cf16b9a2080847520fa601e4a6d60a84ffb1c1b9088e24eb3215c2154f37a44"
    )
    assert second.canonical == GOLDEN_ACTION.replace(
        b'"entry":"action",', b'"entry":"action","epoch":2,'
    )
    assert (
        second.leaf_hash.hex() == "be1b831468dc9899626adab26b766714ca27d565ec023e62567ebce52a0f2e76"
    )


def test_a_transition_and_its_leaf_hash() -> None:
    entry = leaf(
        transition_document(
            shipment_id=SHIPMENT,
            sequence=3,
            from_status="unknown",
            to_status="in_transit",
            event_id="d1-260301-abc",
            worker="worker-1",
            message_id=MESSAGE,
            recorded_at=RECORDED,
        ),
        epoch=1,
    )
    assert entry.canonical == GOLDEN_TRANSITION
    assert (
        entry.leaf_hash.hex() == "b611fa860804aa94b2124742671b9f8444df79eed932d439c6fbc11b6b01fa9f"
    )


def test_a_fan_out_lists_its_subscriptions_in_order_and_says_when_it_is_a_replay() -> None:
    stated: dict[str, Any] = {
        "shipment_id": SHIPMENT,
        "sequence": 3,
        "event": b"\x04" * 32,
        "from_status": "unknown",
        "to_status": "in_transit",
        "subscriptions": [UUID(int=2), UUID(int=1)],
        "recorded_at": RECORDED,
    }
    assert leaf(fanout_document(**stated), epoch=1).canonical == GOLDEN_FANOUT
    again = leaf(fanout_document(**stated, replayed=True), epoch=1).canonical
    assert again == GOLDEN_FANOUT.replace(b'"sequence"', b'"replayed":true,"sequence"')


def test_the_end_of_a_notification_with_all_tries_and_what_it_covers() -> None:
    first = try_document(
        number=1,
        started_at=RECORDED,
        duration_ms=9,
        outcome="timed_out",
        status_code=None,
        body_commitment=b"\x06" * 32,
    )
    last = try_document(
        number=1,
        started_at=RECORDED,
        duration_ms=12,
        outcome="delivered",
        status_code=204,
        body_commitment=b"\x05" * 32,
    )
    document = attempt_document(
        webhook_id="n1-abc",
        subscription_id=UUID(int=1),
        shipment_id=SHIPMENT,
        sequence=3,
        outcome="delivered",
        tries=[last],
        gap={"skipped": 2, "from_sequence": 1, "to_sequence": 2},
        covers=[{"sequence": 1}, {"sequence": 2, "tries": [first]}],
        recorded_at=RECORDED,
        part_commitment=b"\x02" * 32,
    )
    assert leaf(document, epoch=1).canonical == GOLDEN_ATTEMPT
    bare = leaf(
        document | {"gap": None, "covers": None, "part_commitment": None, "tries": []}, epoch=1
    ).canonical
    assert set(json.loads(bare)) == {
        *(
            "entry",
            "format",
            "webhook_id",
            "subscription_id",
            "shipment_id",
            "sequence",
            "outcome",
            "tries",
            "recorded_at",
        )
    }


def test_an_observation_has_its_landed_bytes() -> None:
    document = observation_document(
        shipment_id=SHIPMENT,
        version=3,
        kind="stalled",
        since=RECORDED.replace(minute=5, second=0, microsecond=0),
        details={"rule": "stalled_for", "seconds": 259200},
        recorded_at=RECORDED,
    )
    assert leaf(document, epoch=1).canonical == GOLDEN_OBSERVATION


def test_the_personal_part_holds_set_fields_alone_and_sorted() -> None:
    assert part_bytes(FULL.personal) == b'{"description":"Said \\"so\\"","signed_by":"A"}'
    everything = Personal(
        description="d",
        signed_by="s",
        delivery_address="a",
        postal_code="52531",
        facility="At Ann's",
        raw=Raw(code="to Ann", further=("1",)),
    )
    assert part_bytes(everything) == (
        b'{"delivery_address":"a","description":"d","facility":"At Ann\'s","postal_code":"52531",'
        b'"raw":{"code":"to Ann","further":["1"]},"signed_by":"s"}'
    )


text = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | text,
    lambda children: st.lists(children) | st.dictionaries(keys, children),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(keys, values))
def test_the_bytes_are_those_of_rfc_8785(value: dict[str, object]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"x": b"bytes"}, {"x": {1, 2}}])
def test_a_value_outside_the_domain_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        canonical_bytes(value)
