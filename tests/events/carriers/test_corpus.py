"""Every registered carrier against the corpus of real payloads, which lies outside the
repository.
"""

import importlib
import json
import os
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from events import carriers
from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Normalized, Reading
from events.identity.ids import carrier_code, identify
from events.spelling import normalize_number
from events.vocabulary import Kind

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
CORPUS: Final = Path(
    os.environ.get("STATESVC_CORPUS") or Path(__file__).parents[4] / "shared" / "corpus"
)
WRONG: Final = {
    "epcis/xml_hash_id_1_with_doctype.xml": (
        "its one event is about three things, so it is read of each"
    ),
    "epcis/xml_hash_id_4.xml": "its one event is about three things, so it is read of each",
}
"""Payloads whose expectation is wrong, and why."""

NOT_JUDGED: Final = "not judged"
"""Beginning of the note of a payload that only has to be read."""

NO_CORPUS: Final = "the corpus is absent: set STATESVC_CORPUS to its folder"


def expectations() -> Iterator[Any]:
    """Yield each payload with what is expected of it."""
    index = CORPUS / "expected.json"
    if not index.is_file():
        yield pytest.param(None, marks=pytest.mark.skip(reason=NO_CORPUS))
        return
    for document in json.loads(index.read_text("utf-8")):
        if document["carrier"] in CARRIERS:
            document["events"] = [
                one for event in document["events"] for one in one_per_number(event)
            ]
            yield pytest.param(document, id=document["path"])


def one_per_number(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an event of several shipments for each.

    An absent part of a code is printed as `None` by some expectations.
    """
    code = event["raw_code"] and event["raw_code"].removesuffix("/None")
    for number in (event["tracking_number"], *event.get("also_numbers", ())):
        yield event | {"tracking_number": number, "raw_code": code}


def is_judged(document: dict[str, Any]) -> bool:
    """Return whether its events are stated; the others only have to be read."""
    return not (document["note"] or "").startswith(NOT_JUDGED)


def read(carrier_id: str, body: bytes) -> Normalized:
    carrier = CARRIERS[carrier_id]
    return carrier.normalizers[carrier.stable](body, RECEIVED_AT)


def digits(printed: str) -> str:
    return "".join(character for character in printed if character.isdigit())


def times_as_printed(expected: str) -> set[str]:
    """Return both times of `20240423 091519 local; 20240423 131519 GMT`.

    A `local-05:00` names the offset that the other half implies; what stands after `off` is an
    offset in a field of its own.

    """
    parts = (
        part.split(" local")[0].split(" off ")[0].split(" [")[0].split(" (")[0]
        for part in expected.split(";")
    )
    return {digits(part) for part in parts}


def stated(reading: Reading, expected: dict[str, Any]) -> dict[str, object]:
    """Return what the reading says about everything that the expectation asserts, in
    the expectation's words.
    """
    found: dict[str, object] = {
        "discriminator": reading.discriminator if "discriminator" in expected else None,
        "piece": reading.piece if "piece" in expected else None,
        "signed_by": reading.signed_by if "signed_by" in expected else None,
    }
    if expected["tracking_number"] is not None or expected.get("number_from_request"):
        found["tracking_number"] = (
            None if reading.tracking_number is None else normalize_number(reading.tracking_number)
        )
    if expected["raw_code"] is not None:
        found["raw_code"] = carrier_code(reading.raw)
    if expected["status"] is not None:
        found["status"] = (
            reading.status.value
            if reading.kind is Kind.SCAN and reading.status is not None
            else reading.kind.value
        )
    return found


def asserted(expected: dict[str, Any]) -> dict[str, object]:
    number = None if expected.get("number_from_request") else expected["tracking_number"]
    found: dict[str, object] = {
        "discriminator": expected.get("discriminator"),
        "piece": expected.get("piece"),
        "signed_by": expected.get("signed_by"),
    }
    if number is not None or expected.get("number_from_request"):
        found["tracking_number"] = None if number is None else normalize_number(number)
    return found | {
        name: expected[name] for name in ("raw_code", "status") if expected[name] is not None
    }


@pytest.mark.parametrize("document", list(expectations()))
def test_a_real_payload_says_what_is_expected(document: dict[str, Any]) -> None:
    try:
        normalized = read(document["carrier"], (CORPUS / document["path"]).read_bytes())
    except UnreadableMessageError:
        assert is_judged(document), "this payload has to be read"
        assert document["events"] == [], "only a payload without events may be refused"
        return
    readings = normalized.readings
    if not is_judged(document) or document["path"] in WRONG:
        assert readings
        assert normalized.rejections == ()
        return
    assert [
        stated(reading, expected)
        for reading, expected in zip(readings, document["events"], strict=False)
    ] == [asserted(expected) for expected in document["events"]]
    assert len(readings) == len(document["events"])
    assert normalized.rejections == ()
    for reading, expected in zip(readings, document["events"], strict=True):
        if expected["occurred_at_raw"] is not None:
            assert digits(reading.time.printed) in times_as_printed(expected["occurred_at_raw"])
        if expected.get("occurred_at") is not None:
            assert reading.time.instant == datetime.fromisoformat(expected["occurred_at"])
        if expected.get("time_precision") is not None:
            assert reading.time.precision == expected["time_precision"]


@pytest.mark.parametrize("document", list(expectations()))
def test_the_scans_of_a_payload_have_different_ids(document: dict[str, Any]) -> None:
    try:
        readings = read(document["carrier"], (CORPUS / document["path"]).read_bytes()).readings
    except UnreadableMessageError:
        readings = ()
    ids = [
        identify(
            reading, carrier_id=document["carrier"], digest=bytes, allow_unnumbered=True
        ).event_id
        for reading in readings
    ]
    statements = {
        (
            reading.tracking_number,
            reading.discriminator,
            reading.raw,
            reading.time.identity,
            reading.place,
        )
        for reading in readings
    }
    assert len(set(ids)) >= len(statements)


def test_every_carrier_module_is_registered() -> None:
    modules = [
        importlib.import_module(f"events.carriers.{module.name}")
        for module in pkgutil.iter_modules(carriers.__path__)
    ]
    declared = {module.CARRIER.carrier_id for module in modules if hasattr(module, "CARRIER")}
    assert declared == set(CARRIERS)
