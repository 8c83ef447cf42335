"""The document that a foreign worker hands over: both ways, and what is refused."""

import json
from typing import Any

import pytest

from events.carriers import CARRIERS
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE
from events.identity.ids import identify
from events.normalized import dump, load
from events.vocabulary import Status
from tests.events.carriers.carrier_fixtures import FIXTURES, RECEIVED_AT


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_every_fixture_gets_the_same_ids_and_facts_through_a_hand_over(carrier_id: str) -> None:
    carrier = CARRIERS[carrier_id]
    for path in sorted((FIXTURES / carrier_id).glob("*")):
        try:
            normalized = carrier.normalizers[carrier.stable](path.read_bytes(), RECEIVED_AT)
        except UnreadableMessageError:
            continue
        again = load(dump(normalized))
        assert again == normalized
        pairs = list(zip(normalized.readings, again.readings, strict=True))
        for ours, theirs in pairs:
            # equal instants may still print another wall clock
            assert ours.time.instant.utcoffset() == theirs.time.instant.utcoffset()
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


def test_fields_that_no_fixture_fills_are_loaded() -> None:
    filled = {"contradicted": "delivered", "delivery_address": "5 Main St"}
    document = json.dumps(_document(kind="unmapped", status=None, **filled)).encode()
    (reading,) = load(document).readings
    assert (reading.contradicted, reading.delivery_address) == (Status.DELIVERED, "5 Main St")
    assert load(dump(load(document))) == load(document)


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
