"""A place in each log, as one text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statesvc.gateway.places import NOW, read_places, written_places
from statesvc.http.problem import Code, Problem

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True)
PLACES = st.builds("{}.{}".format, st.integers(1, 999_999_999), st.integers(-1, 10**18 - 1)) | st.none()


@given(places=st.dictionaries(NAMES, PLACES, min_size=1, max_size=5))
def test_what_was_written_is_read(places: dict[str, str | None]) -> None:
    assert read_places(written_places(places), or_now=True) == {name: place or NOW for name, place in places.items()}


@pytest.mark.parametrize(
    "text",
    ["1.5", "north", "north=", "north=x", "north=1.5,", ",", "north=1.5\n", "north=1.5 ", "North=1.5", "north=1.5;south=1.5", "a=1=2"],
)
@pytest.mark.parametrize("or_now", [False, True])
def test_what_is_no_place_is_refused(text: str, or_now: bool) -> None:  # noqa: FBT001 - drawn by name
    with pytest.raises(Problem) as refused:
        read_places(text, or_now=or_now)
    assert refused.value.code is Code.INVALID_CURSOR


def test_now_is_a_place_of_the_stream_alone() -> None:
    assert read_places("north=1.5,south=now", or_now=True) == {"north": "1.5", "south": "now"}
    with pytest.raises(Problem):
        read_places("north=1.5,south=now")
