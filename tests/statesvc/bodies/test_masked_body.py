import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statesvc.bodies.masked_body import mask_body

SECRET = st.text(
    st.characters(whitelist_categories=["Lu", "Ll", "Nd"]), min_size=9, max_size=30
).map(lambda text: f"zq{text}")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            '{"no":"778412345678","scans":[{"date":"2026-11-26","by":"J. Doe","ok":true,"n":12}]}',
            '{"no":"████████","scans":[{"date":"████████","by":"██████","ok":████,"n":██}]}',
        ),
        ('<a name="Doe"><b>Jane</b></a>', '<a name="███"><b>████</b></a>'),
    ],
)
def test_names_stay_and_values_go(body: str, shown: str) -> None:
    masked = mask_body(body.encode())
    assert (masked.text, masked.is_cut_off) == (shown, False)


def test_a_body_that_ends_early_is_said_to() -> None:
    masked = mask_body(b'{"a":[{"date":"2026-11-26T06:')
    assert (masked.is_cut_off, masked.characters) == (True, 29)
    assert masked.text.endswith('"date":"████████')
    assert mask_body(b"<a><b>text</b>").is_cut_off
    assert not mask_body(b'<?xml version="1.0"?><a x="1"><b/></a>').is_cut_off


def test_a_name_that_is_no_plain_word_is_masked_too() -> None:
    assert "Jane" not in mask_body(b'{"Jane Doe, 12 Main St":1}').text


def test_a_long_body_is_shown_by_its_beginning_and_its_end() -> None:
    masked = mask_body(b"[" + b",".join([b'{"a":1}'] * 2000) + b"]")
    assert len(masked.text) < 2_100
    assert masked.text.endswith("]")


@given(
    st.recursive(
        SECRET, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b"]), inner)
    ),
    st.integers(0, 200),
)
def test_no_value_is_ever_shown(document: object, end: int) -> None:
    body = orjson.dumps({"a": document})
    for shown in (
        mask_body(body),
        mask_body(body[:end]),
        mask_body(b"<a>" + body + b"</a>"),
        mask_body(b"x" + body),
    ):
        assert "zq" not in shown.text
