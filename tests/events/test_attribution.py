"""Attribution by altering each value: over the fixtures of every carrier, over every form of a body, and over documents made up here."""

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import attribution
from events.alterable import NESTED_MAX, alterable
from events.attribution import Attribution, attribute
from events.carriers import CARRIERS
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Normalized, PrintedTime, Raw, Reading
from events.identity.ids import identify
from events.parsing.json import read_json
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import RECEIVED_AT, fixture_paths

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIXTURES: Final = [
    pytest.param(carrier_id, path, id=f"{carrier_id}/{path.name}")
    for carrier_id in CARRIERS
    for path in fixture_paths(carrier_id)
]


def explained(carrier_id: str, body: bytes) -> Attribution:
    carrier = CARRIERS[carrier_id]
    identified = partial(identify, carrier_id=carrier_id, digest=bytes, allow_unnumbered=True)
    return attribute(
        body,
        normalizer=carrier.normalizers[carrier.stable],
        received_at=RECEIVED_AT,
        identify=identified,
    )


@pytest.mark.parametrize(("carrier_id", "path"), FIXTURES)
def test_every_number_code_status_and_time_of_a_fixture_comes_from_somewhere(
    carrier_id: str, path: Path
) -> None:
    found = explained(carrier_id, path.read_bytes())
    assert found.is_faithful
    assert found.untried == 0
    for each in found.events:
        reading, raw = each.reading, each.reading.raw
        has_code = bool(raw.type or raw.code or raw.reason)
        expected = {
            "number": reading.tracking_number,
            "code": has_code,
            "time": reading.time.printed,
        }
        expected["status"] = has_code and reading.kind in {Kind.SCAN, Kind.INFO}
        assert {
            name for name, said in expected.items() if said and not each.origins.get(name)
        } == set()
    said = {
        pointer
        for each in found.events
        for pointers in each.origins.values()
        for pointer in pointers
    }
    assert not said & set(found.ignored)


def test_every_carrier_is_explained_here() -> None:
    assert {case.values[0] for case in FIXTURES} == CARRIERS.keys()


def toy(body: bytes, _received_at: datetime) -> Normalized:
    """Read a list of scans, each of a number, a code, a day and a town that says the zone; a scan without a day is none."""
    value = read_json(body)
    if not isinstance(value, dict) or not isinstance(value.get("scans"), list):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no scans")
    return Normalized(
        readings=tuple(
            _reading(value, scan)
            for scan in value["scans"]
            if isinstance(scan, dict) and scan.get("day")
        )
    )


def _reading(value: dict[str, Any], scan: dict[str, Any]) -> Reading:
    delivered = str(scan.get("code")) == "D1"
    return Reading(
        tracking_number=str(value.get("number")),
        kind=Kind.SCAN if delivered else Kind.UNMAPPED,
        status=Status.DELIVERED if delivered else None,
        raw=Raw(code=str(scan.get("code"))),
        time=PrintedTime(
            printed=str(scan["day"]),
            instant=NOON,
            tz_source=TzSource.LOCATION if scan.get("town") == "Reno" else TzSource.ASSUMED_UTC,
            precision=TimePrecision.DAY,
            identity="20260301",
        ),
        place=EventPlace(city=str(scan.get("town"))),
    )


def toy_attribution(body: bytes) -> Attribution:
    return attribute(
        body,
        normalizer=toy,
        received_at=NOON,
        identify=partial(identify, carrier_id="ups", digest=bytes, allow_unnumbered=True),
    )


SCAN: Final = st.fixed_dictionaries(
    {
        "code": st.sampled_from(["D1", "D2", "x"]),
        "day": st.sampled_from(["2026-03-01", "2026-03-02", ""]),
        "town": st.sampled_from(["Reno", "Y"]),
    },
    optional={
        "note": st.text(max_size=5),
        "weight": st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
    },
)


NAME: Final = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4).filter(
    lambda name: name not in {"scans", "number"}
)


@pytest.mark.slow
@given(st.lists(SCAN, max_size=4), st.dictionaries(NAME, st.integers()))
def test_what_is_read_is_attributed_and_what_is_not_is_ignored(
    scans: list[dict[str, Any]], others: dict[str, int]
) -> None:
    found = toy_attribution(json.dumps({"number": "N1", "scans": scans, **others}).encode())
    read = [index for index, scan in enumerate(scans) if scan["day"]]
    assert len(found.events) == len(read)
    for each, index in zip(found.events, read, strict=True):
        where = f"/scans/{index}"
        origins = {name: set(pointers) for name, pointers in each.origins.items()}
        assert origins["number"] == {"/number"}
        assert origins["code"] == {f"{where}/code"}
        assert f"{where}/day" in origins["time"]
        assert origins["place"] == {f"{where}/town"}
        if scans[index]["code"] == "D1":
            assert origins["status"] == {f"{where}/code"}
        if scans[index]["town"] == "Reno":
            assert origins["zone"] == {f"{where}/town"}
    printed = {f"/{name.replace('~', '~0').replace('/', '~1')}" for name in others}
    unread = {
        f"/scans/{index}/{name}"
        for index, scan in enumerate(scans)
        for name in ("note", "weight")
        if scan.get(name) not in {None, ""}
    }
    assert printed | unread <= set(found.ignored)


def test_two_values_that_say_the_same_are_found_together() -> None:
    def either(body: bytes, _received_at: datetime) -> Normalized:
        scan = read_json(body)
        code = "D1" if "D1" in {scan.get("code"), scan.get("rollup")} else "none"
        return Normalized(
            readings=(_reading({"number": "N1"}, {"code": code, "day": "2026-03-01"}),)
        )

    found = attribute(
        b'{"code": "D1", "rollup": "D1", "note": "x"}',
        normalizer=either,
        received_at=NOON,
        identify=partial(identify, carrier_id="ups", digest=bytes, allow_unnumbered=True),
    )
    assert (
        found.events[0].origins["code"] == found.events[0].origins["status"] == ["/code", "/rollup"]
    )
    assert found.ignored == ("/note",)


def test_a_value_without_which_nothing_is_read_is_needed() -> None:
    def versioned(body: bytes, received_at: datetime) -> Normalized:
        if read_json(body).get("version") != "2":
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "another version")
        return toy(body, received_at)

    body = b'{"version": "2", "number": "N1", "scans": [{"code": "D1", "day": "2026-03-01"}]}'
    found = attribute(
        body,
        normalizer=versioned,
        received_at=NOON,
        identify=partial(identify, carrier_id="ups", digest=bytes, allow_unnumbered=True),
    )
    assert found.needed == ("/version",)


def test_what_the_bounds_leave_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(
        {"number": "N1", "scans": [{"code": "D1", "day": "2026-03-01"}] * 20}
    ).encode()
    monkeypatch.setattr(attribution, "LEAVES_MAX", 5)
    assert toy_attribution(body).untried == 41 - 5
    monkeypatch.setattr(attribution, "BYTES_MAX", len(body) * 20)
    assert 41 - 5 < toy_attribution(body).untried < 41


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "b": ["x", null, ""], "c/d": {"~": true}}',
        b"\xef\xbb\xbf[1.5, 12345678901234567890123]",
        b'"{\\"a\\": 1}"',
        b'{"inner": "{\\"a\\": [1, 2]}", "xml": "<a b=\'1\'><c>2</c></a>"}',
        b"<r xmlns='urn:x' a='1'><b> 2 </b><b>3</b><c/></r>",
        b"<?xml version='1.0'?><s:Envelope xmlns:s='x'><s:Body>{\"a\": 1}</s:Body></s:Envelope>",
        b"id=1&content=" + quote_plus("<a><b>1</b></a>").encode(),
        b'{"a": 1}\n\nnone\n{"a": 2}\n',
    ],
)
def test_a_document_is_as_before_once_its_values_are_put_back(body: bytes) -> None:
    document = alterable(body)
    assert document is not None
    assert document.leaves
    for leaf in document.leaves:
        leaf.write(leaf.value)
    before = document.text()
    for leaf in document.leaves:
        for altered in ("Zq9", None):
            leaf.write(altered)
            assert document.text() != before
        leaf.write(leaf.value)
        assert document.text() == before


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b'{"a": {"b": [1, {"c": "x"}]}, "d/e": 2}', ["/a/b/0", "/a/b/1/c", "/d~1e"]),
        (b'{"inner": "[{\\"a\\": 1}]"}', ["/inner/0/a"]),
        (
            b"<r k='1'><b>2</b><b>3</b><c><d>4</d></c></r>",
            ["/r/@k", "/r/b[1]", "/r/b[2]", "/r/c/d"],
        ),
        (b"content=%3Ca%3E1%3C%2Fa%3E", ["/a"]),
        (b'{"a": 1}\n{"a": 2}', ["/0/a", "/1/a"]),
    ],
)
def test_each_value_has_a_pointer(body: bytes, pointers: list[str]) -> None:
    document = alterable(body)
    assert document is not None
    assert [leaf.pointer for leaf in document.leaves] == pointers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"7",
        b"<a>",
        b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
        b"\xff\x00",
    ],
)
def test_what_is_no_document_has_no_values(body: bytes) -> None:
    document = alterable(body)
    assert document is None or document.leaves == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "body", [b"<r>" + b"<b>1</b>" * 20_000 + b"</r>", b"[" + b'{"a": "[[1]]"},' * 20_000 + b"1]"]
)
def test_many_values_are_counted_in_a_walk_over_them(body: bytes) -> None:
    document = alterable(body)
    assert document is not None
    assert len(document.leaves) >= 20_000


def test_a_text_in_a_text_is_opened_to_a_bound() -> None:
    value: object = 1
    for _ in range(8):
        value = {"a": json.dumps(value)} if not isinstance(value, int) else {"a": value}
    document = alterable(json.dumps(value).encode())
    assert document is not None
    assert [leaf.pointer for leaf in document.leaves] == ["/a" * (NESTED_MAX + 1)]


@given(st.sampled_from(["ups", "dhl_unified", "usps", "aftership", "epcis"]), st.data())
def test_a_mutated_body_is_explained_or_unreadable_and_nothing_else(
    carrier_id: str, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(fixture_paths(carrier_id)))
    body = bytearray(path.read_bytes()[:3000])
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = explained(carrier_id, bytes(body))
    except UnreadableMessageError:
        return
    assert len(found.ignored) <= found.leaves
