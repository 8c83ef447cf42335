"""The document that a foreign worker hands over: both ways, and what is refused."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.carriers import CARRIERS
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace, Normalized, PrintedTime, Raw, Reading, Rejection
from events.identity.ids import identify
from events.normalized import dump, load
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import FIXTURES, RECEIVED_AT

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(
    lambda minutes: timezone(timedelta(minutes=minutes)) if minutes else UTC
)
STATED = st.sampled_from([status for status in Status if status is not Status.UNKNOWN])
KINDS = st.one_of(
    st.tuples(st.just(Kind.SCAN), STATED),
    st.tuples(st.sampled_from([Kind.INFO, Kind.UNMAPPED]), st.none()),
    st.tuples(st.just(Kind.CORRECTION), st.none() | STATED),
)
MOMENTS = st.builds(
    PrintedTime,
    printed=WORDS,
    # the zones are drawn beside
    instant=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS),  # noqa: DTZ001
    tz_source=st.sampled_from(TzSource),
    precision=st.sampled_from(TimePrecision),
    identity=st.from_regex(r"([0-9]{8}(T[0-9]{4}([0-9]{2}(\.[0-9]{6})?)?)?)?", fullmatch=True),
    zone=st.none() | WORDS,
    flag=st.none() | WORDS,
)
PLACES = st.builds(
    EventPlace,
    **dict.fromkeys(("city", "region", "postal_code", "country", "facility"), st.none() | WORDS),
)
OPTIONAL = (
    "tracking_number",
    "piece",
    "native_id",
    "description",
    "signed_by",
    "delivery_address",
    "estimated_delivery",
    "service",
)


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    kind, status = draw(KINDS)
    return Reading(
        kind=kind,
        status=status,
        reason=draw(st.none() | st.sampled_from(Reason)),
        raw=Raw(
            type=draw(st.none() | WORDS),
            code=draw(st.none() | WORDS),
            reason=draw(st.none() | WORDS),
            further=draw(st.tuples(WORDS)),
        ),
        time=draw(MOMENTS),
        place=draw(PLACES),
        by_category=draw(st.booleans()),
        native_id_per_number=draw(st.booleans()),
        discriminator=draw(WORDS),
        stamp=draw(WORDS),
        corrects=draw(WORDS) if kind is Kind.CORRECTION else None,
        contradicted=draw(st.none() | STATED) if kind is Kind.UNMAPPED else None,
        **{name: draw(st.none() | WORDS) for name in OPTIONAL},
    )


@given(
    st.lists(readings(), max_size=3),
    st.lists(st.builds(Rejection, pointer=WORDS, why=WORDS), max_size=2),
)
def test_what_is_dumped_is_loaded(said: list[Reading], rejected: list[Rejection]) -> None:
    normalized = Normalized(readings=tuple(said), rejections=tuple(rejected))
    again = load(dump(normalized))
    assert again == normalized
    offsets = [
        [reading.time.instant.utcoffset() for reading in side.readings]
        for side in (again, normalized)
    ]
    assert offsets[0] == offsets[1], "equal instants may still print another wall clock"


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_every_fixture_gets_the_same_ids_and_facts_through_a_hand_over(carrier_id: str) -> None:
    carrier = CARRIERS[carrier_id]
    for path in sorted((FIXTURES / carrier_id).glob("*")):
        try:
            normalized = carrier.normalizers[carrier.stable](path.read_bytes(), RECEIVED_AT)
        except UnreadableMessageError:
            continue
        pairs = zip(normalized.readings, load(dump(normalized)).readings, strict=True)
        for ours, theirs in ((ours, theirs) for ours, theirs in pairs if ours.tracking_number):
            here, there = (
                identify(reading, carrier_id=carrier_id, digest=_digest)
                for reading in (ours, theirs)
            )
            assert here == there


def _digest(data: bytes) -> bytes:
    return data.ljust(32)[:32]


def _document(**changed: Any) -> dict[str, Any]:
    time = {
        "printed": "x",
        "instant": "2026-03-01T10:00:00-05:00",
        "tz_source": "pair",
        "precision": "second",
        "identity": "20260301T100000",
    }
    reading = {
        "tracking_number": "SECRET1",
        "kind": "scan",
        "status": "delivered",
        "raw": {"code": "FS"},
        "time": time,
    }
    return {"format": 1, "readings": [{**reading, **changed}]}


def test_absent_fields_have_no_value() -> None:
    (reading,) = load(json.dumps(_document()).encode()).readings
    assert (reading.place, reading.raw.further, reading.discriminator, reading.by_category) == (
        NOWHERE,
        (),
        "",
        False,
    )


@pytest.mark.parametrize(
    ("document", "detail"),
    [
        (_document(kind="SECRET"), "/readings/0/kind: "),
        (_document(SECRET="SECRET"), "/readings/0: Extra inputs"),
        (_document(status=None), "`status` is required for a scan"),
        (_document(status="unknown"), "`unknown` is the state before"),
        (_document(kind="info"), "`status` belongs to a scan"),
        (_document(corrects="SECRET"), "`corrects` belongs to a correction"),
        (_document(tracking_number=17), "/readings/0/tracking_number: "),
        (_document(by_category="yes"), "/readings/0/by_category: "),
        (_document(raw={"further": "SECRET"}), "/readings/0/raw/further: "),
        (
            _document(
                time={**_document()["readings"][0]["time"], "instant": "2026-03-01T10:00:00"}
            ),
            "/time/instant: should be a time such as",
        ),
        (
            _document(
                time={**_document()["readings"][0]["time"], "instant": "2026-02-30T10:00:00Z"}
            ),
            "/time/instant: should be a time that exists",
        ),
        (
            _document(time={**_document()["readings"][0]["time"], "identity": "SECRET"}),
            "/readings/0/time/identity: ",
        ),
        ({**_document(), "format": 2}, "/format: "),
        ({"format": 1}, "/readings: Field required"),
        ([], "the document: "),
    ],
)
def test_what_is_refused_names_the_field_and_the_rule_and_no_value(
    document: object, detail: str
) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        load(json.dumps(document).encode())
    assert caught.value.cause is Cause.NORMALIZER_FAILED
    assert detail in caught.value.detail
    assert "SECRET" not in caught.value.detail


@pytest.mark.parametrize(
    "document",
    [b"", b"\xff", b"{", b'{"format": 1, "format": 1, "readings": []}', b"[" * 300 + b"]" * 300],
)
def test_what_is_no_json_is_refused(document: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        load(document)
    assert caught.value.cause is Cause.NORMALIZER_FAILED
