"""Numbers by name, in the bodies of ours and of all carriers."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.parsing.named_numbers import NUMBERS_MAX, named_numbers, names_only
from events.spelling import normalize_number
from tests.corpus_shares import CORPUS
from tests.events.carriers.carrier_fixtures import fixture_paths, read

FIELDS = ("number|code", "parcel.id", "prefix+bill")
NAMES = st.sampled_from(["number", "code", "id", "prefix", "bill", "parcel", "other"])
SAID = st.recursive(
    st.sampled_from(["A1", "A2", "number", '{"number":"A2"}', "", 7, None]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(NAMES, inside, max_size=4),
    max_leaves=12,
)


def bodies(carrier_id: str) -> Iterator[bytes]:
    for path in (*fixture_paths(carrier_id), *sorted((CORPUS / carrier_id).rglob("*"))):
        if path.is_file():
            yield path.read_bytes()


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS))
def test_every_number_that_an_event_has_is_named_by_a_declared_field(carrier_id: str) -> None:
    carrier = CARRIERS[carrier_id]
    for body in bodies(carrier_id):
        named = set(named_numbers(body, carrier.number_fields))
        assert all(
            named <= {number} for number in named if names_only(body, carrier.number_fields, number)
        )
        try:
            readings = read(carrier, body).readings
        except UnreadableMessageError:
            continue
        numbers = {
            normalize_number(reading.tracking_number)
            for reading in readings
            if reading.tracking_number
        }
        assert numbers <= set(map(normalize_number, named))


@given(SAID)
def test_the_bytes_alone_say_nothing_that_a_closer_look_does_not(said: object) -> None:
    body = orjson.dumps(said)
    assert not names_only(body, FIELDS, "A1") or set(named_numbers(body, FIELDS)) <= {"A1"}


@pytest.mark.parametrize(
    ("body", "only"),
    [
        (b'{"number":"A1"}', True),
        (b'[{"number":"A1","id":"A1"},{"code":"A1"}]', True),
        (b'{"other":"A2"}', True),
        (b'{"number":"A1","code":"A2"}', False),
        (b'{"number":"A1","number":"A2"}', False),
        (b'{"number":["A1"]}', False),
        (b'{"prefix":"A1","bill":"A1"}', False),
        (b'{"n\\u0075mber":"A2"}', False),
        (b'{"other":"{\\"number\\":\\"A2\\"}"}', False),
        ('{"number":"A2"}'.encode("utf-16"), False),
        ('{"number":"A2"}'.encode("utf-16-le"), False),
        (b"<number>A2</number>", False),
        (b'x=1&y={"number":"A2"}', False),
    ],
)
def test_a_number_that_is_the_only_one(body: bytes, *, only: bool) -> None:
    assert names_only(body, FIELDS, "A1") is only


@pytest.mark.parametrize(
    ("carrier_id", "body", "numbers"),
    [
        (
            "17track",
            b'{"event":"TRACKING_STOPPED","data":{"number":"RR1 23","carrier":1}}',
            ["RR123"],
        ),
        (
            "17track",
            b'{"code":0,"data":{"accepted":[],"rejected":[{"number":"A1"},{"number":"A2"}]}}',
            ["A1", "A2"],
        ),
        (
            "ups",
            (
                b'{"trackResponse":{"shipment":[{"inquiryNumber":"1ZA",'
                b'"warnings":[{"code":"TW0001"}]}]}}'
            ),
            ["1ZA"],
        ),
        (
            "ups",
            (
                b"<TrackResponse><Shipment><Package><TrackingNumber>1Z"
                b" B</TrackingNumber></Package></Shipment></TrackResponse>"
            ),
            ["1ZB"],
        ),
        (
            "easypost",
            (
                b'{"object":"Event","description":"tracker.created","result":{"object":"Tracker",'
                b'"tracking_code":"EZ1"}}'
            ),
            ["EZ1"],
        ),
        (
            "dhl_unified",
            b'{"shipments":[{"id":"7","events":[]},{"id":8,"events":[null]}]}',
            ["7", "8"],
        ),
        ("smartkargo", b'{"prefix":"123","airWaybill":"456"}', ["123456"]),
        ("aramex", b'{"TrackingResults":[],"NonExistingWaybills":["1","2"]}', ["1", "2"]),
        ("usps", b'<TrackResponse><TrackInfo ID="94"><Error/></TrackInfo></TrackResponse>', ["94"]),
        (
            "canonical",
            (
                b'{"tracking_number":"1"}\n{"tracking_number":null}\nnothing\n{"tracking_number":"2",'
                b'"status":"?"}'
            ),
            ["1", "2"],
        ),
        (
            "jtexpress",
            b"x=1&bizContent=%5B%7B%22billCode%22%3A%2263%22%2C%22details%22%3A%5B%5D%7D%5D",
            ["63"],
        ),
        (
            "evri",
            b'{"results":[{"parcelIdentifiers":[{"type":"BARCODE","value":"H1"}]}],"failures":[]}',
            ["H1"],
        ),
        ("ups", b"nothing that can be read", []),
    ],
)
def test_numbers_without_an_event(carrier_id: str, body: bytes, numbers: list[str]) -> None:
    assert (
        sorted(map(normalize_number, named_numbers(body, CARRIERS[carrier_id].number_fields)))
        == numbers
    )


def test_a_message_of_any_number_of_numbers_is_read_in_bounded_memory() -> None:
    listed: dict[str, Any] = named_numbers(
        b'{"trackingNumber":[' + b",".join(b"%d" % n for n in range(5000)) + b"]}",
        ("trackingNumber",),
    )
    assert len(listed) == NUMBERS_MAX + 1


def test_what_leaves_can_be_stored() -> None:
    assert list(
        named_numbers(b'{"trackingNumber": "1Z\\u0000A"}', CARRIERS["ups"].number_fields)
    ) == ["1Z\ufffdA"]


def test_the_members_of_an_object_may_be_named_by_numbers() -> None:
    body = b'{"result": {"A1": {"scans": []}, "A2": []}, "list": {"result": [{"meta": {}}]}}'
    assert [*named_numbers(body, ("result.{}",))] == ["A1", "A2"]
    assert not names_only(body, ("result.{}",), "A1")


@pytest.mark.parametrize("body", [b"<a><b>1</b></a>", b'{"a": [{"b": 1}]}', b"[]"])
def test_the_fields_of_every_carrier_can_be_looked_for_in_any_document(body: bytes) -> None:
    for carrier in CARRIERS.values():
        assert set(named_numbers(body, carrier.number_fields)) <= {"1"}
