import gzip
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.errors import Cause, UnreadableMessageError
from events.parsing.json import DEPTH_MAX, read_json, read_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4)
    ),
)


def storable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(storable(key) and storable(member) for key, member in value.items())
    if isinstance(value, list):
        return all(storable(member) for member in value)
    return not isinstance(value, str) or (
        "\x00" not in value and value.encode("utf-8", "replace").decode() == value
    )


# a text may wrap JSON of its own
@given(VALUES.filter(lambda value: not isinstance(value, str)), st.booleans())
def test_what_json_says_is_what_is_read(value: Any, escaped: bool) -> None:  # noqa: FBT001
    body = json.dumps(value, ensure_ascii=escaped).encode()
    assert read_json(body) == json.loads(body.replace(b"\\u0000", b"\\ufffd"))


TWICE = [
    b'{"a": 1, "a": 2}',
    b'{"a": 1, "a" : 1}',
    b'{"x": [{"a": {}, "b": 1, "a": {}}]}',
    b'{"a": 1, "\\u0061": 2}',
    b'{"a": 1, "a": "\\u0022\\u0022"}',
    b'{"a": {"b": 1}, "c": "\\u0022", "a": "\\u0022"}',
]
NO_JSON = [
    b"[NaN]",
    b"[Infinity]",
    b"[-Infinity]",
    b"[1e999]",
    b'{"a": 1}x',
    b'{"a"',
    b"",
    b" \n",
    b"\xef\xbb\xbf",
    b"\xff",
]
ENDLESS = [
    b"[" * 100_000,
    b"[" * 300 + b"]" * 300,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b"[1" + b"0" * 5000 + b"]",
]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        *((body, Cause.UNREADABLE) for body in (*TWICE, *NO_JSON)),
        *((body, Cause.TOO_COMPLEX) for body in ENDLESS),
    ],
)
def test_repeated_keys_no_json_and_endless_nesting_are_refused_at_once(
    body: bytes, cause: Cause
) -> None:
    started = time.perf_counter()
    with pytest.raises(UnreadableMessageError) as raised:
        read_json(body)
    assert raised.value.cause is cause
    assert time.perf_counter() - started < 1


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    assert len(read_json(b"[" + b",".join([b"{}"] * (DEPTH_MAX * 4)) + b"]")) == DEPTH_MAX * 4


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (b'{"n": 9400100000000000000012}', 9400100000000000000012),
        (b"[18446744073709551616]", 2**64),
        (b"[-9223372036854775809]", -(2**63) - 1),
        (b"[-9223372036854775808]", -(2**63)),
    ],
)
def test_long_numbers_keep_all_digits(body: bytes, number: int) -> None:
    value = read_json(body)
    assert (value["n"] if isinstance(value, dict) else value[0]) == number


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "x\\u0000y"}',
        b'{"a": "x\\ud800y"}',
        b'{"x\\u0000y": 1}',
        b'["\\udc00"]',
        b'"\\u0000"',
        b'{"a": [["\\ud800"]]}',
    ],
)
def test_text_that_cannot_be_stored_is_scrubbed(body: bytes) -> None:
    value = read_json(body)
    assert storable(value)
    assert "\ufffd" in json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_every_unicode_encoding_is_read(encoding: str) -> None:
    assert read_json('{"city": "Zoé"}'.encode(encoding)) == {"city": "Zoé"}


def test_json_that_is_wrapped_as_text_is_unwrapped_once() -> None:
    assert read_json(b'"{\\"a\\": [1]}"') == {"a": [1]}
    assert read_json(b'" [1, 2]"') == [1, 2]
    assert read_json(b'"text"') == "text"
    assert read_json(b'["{}"]') == ["{}"]
    for broken in (b'"{"', b'"{\\"a\\": 1, \\"a\\": 2}"', b'"{} {}"'):
        with pytest.raises(UnreadableMessageError):
            read_json(broken)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            gzip.compress(b'{"a": 1}', mtime=0),
            "compressed by gzip, which Content-Encoding does not say",
        ),
        (b"payload=%7B%22a%22%3A+1%7D", "not JSON at character 0, but a form (name=value)"),
    ],
)
def test_what_a_body_is_instead_is_said_where_it_shows(body: bytes, detail: str) -> None:
    with pytest.raises(UnreadableMessageError) as raised:
        read_json(body)
    assert raised.value.detail == detail


@pytest.mark.parametrize(("body", "value"), [(b'{"a": 1}', {"a": 1}), (b"{}", {}), (b"[]", {})])
def test_an_empty_list_is_an_empty_object(body: bytes, value: dict[str, int]) -> None:
    assert read_object(body, otherwise="no push") == value


@pytest.mark.parametrize("body", [b"[1]", b"7", b"null", b"false", b'"text"'])
def test_a_value_that_is_no_object_is_of_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError, match="no push") as raised:
        read_object(body, otherwise="no push")
    assert raised.value.cause is Cause.UNKNOWN_FORMAT
