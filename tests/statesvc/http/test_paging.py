"""Cursors come back as they went, and only to the list that made them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem

FILTER = {"status": "delivered", "carrier_id": None}
positions = st.lists(st.one_of(st.none(), st.text(), st.integers(-(2**53), 2**53)), max_size=4)


@given(positions)
def test_a_cursor_gives_its_position_back(position: list[str | int | None]) -> None:
    try:
        cursor = encode_cursor(position, FILTER)
    except TypeError:  # a lone surrogate is no JSON
        return
    assert decode_cursor(cursor, FILTER, fields=len(position)) == position


@pytest.mark.parametrize("cursor", ["", "x", "WzFd", "é", "W10=", "e30", "[1]", "WzIsIngiXQ"])
def test_what_is_no_cursor_is_a_problem(cursor: str) -> None:
    with pytest.raises(Problem) as caught:
        decode_cursor(cursor, FILTER, fields=0)
    assert caught.value.code is Code.INVALID_CURSOR


def test_a_cursor_is_bound_to_its_filter_and_its_fields() -> None:
    cursor = encode_cursor(["2026-03-01", "a"], FILTER)
    for other, fields in ((FILTER | {"status": None}, 2), (FILTER, 1)):
        with pytest.raises(Problem) as caught:
            decode_cursor(cursor, other, fields=fields)
        assert caught.value.code is Code.INVALID_CURSOR
