"""Merged pages: every item of every cell once, in order, whatever the pages, the cells that are away, and the items that move."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statesvc.gateway.merged_page import CellList, ListOrder, Place, decode_places, encode_places, merge
from statesvc.http.problem import Code, Problem

ORDER = ListOrder(key=lambda item: [item["at"]], rank=lambda item: item["at"])
FILTER = {"path": "/v1/things", "query": []}


def cell_page(items: list[int], cursor: str | None, limit: int, scan: int) -> dict[str, Any]:
    """As a cell answers: at most `limit` items, and no more than `scan` are looked at, of which the odd ones are filtered out."""
    after = -1 if cursor is None else int(cursor)
    seen = [at for at in items if at > after][:scan]
    found = [at for at in seen if at % 2 == 0]
    if len(found) > limit:
        return {"items": [{"at": at} for at in found[:limit]], "next_cursor": str(found[limit - 1])}
    more = [at for at in items if at > after][scan:]
    return {"items": [{"at": at} for at in found], "next_cursor": str(seen[-1]) if more else None}


def next_page(
    cells: Mapping[str, list[int]], places: Mapping[str, Place], *, limit: int, scan: int, away: frozenset[str] = frozenset()
) -> tuple[list[dict[str, Any]], dict[str, Place] | None]:
    lists = {name: CellList(places.get(name, Place())) for name in cells}
    for name in cells.keys() - away:
        lists[name].turn(cell_page(cells[name], lists[name].place.cursor, limit, scan), ORDER)
    read = {name: part for name, part in lists.items() if name not in away}
    items = merge(read, ORDER, limit=limit)
    is_last = all(not part.items and part.next_cursor is None for part in read.values())
    left = decode_places(encode_places({name: part.place for name, part in lists.items()}, FILTER), FILTER)
    return items, None if is_last else left


@settings(max_examples=200, deadline=None)
@given(
    cells=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sets(st.integers(0, 60)).map(sorted), min_size=1),
    limit=st.integers(1, 7),
    scan=st.integers(1, 9),
)
def test_pages_put_together_are_all_items_of_all_cells_once_and_in_order(cells: dict[str, list[int]], limit: int, scan: int) -> None:
    read: list[tuple[int, str]] = []
    places: dict[str, Place] | None = {}
    for _ in range(2000):
        items, places = next_page(cells, places or {}, limit=limit, scan=scan)
        assert len(items) <= limit
        read += [(item["at"], item["cell"]) for item in items]
        if places is None:
            break
    assert places is None, "it ends"
    assert [at for at, _ in read] == sorted(at for at, _ in read)
    assert sorted(read) == sorted((at, name) for name, items in cells.items() for at in items if at % 2 == 0)


@settings(max_examples=100, deadline=None)
@given(
    items=st.sets(st.integers(0, 40)).map(sorted),
    others=st.sets(st.integers(0, 40)).map(sorted),
    outages=st.lists(st.booleans(), max_size=10),
    limit=st.integers(1, 5),
)
def test_a_cell_that_comes_back_before_the_end_goes_on_where_it_was(
    items: list[int], others: list[int], outages: list[bool], limit: int
) -> None:
    cells, read = {"a": items, "b": others}, []
    places: dict[str, Place] | None = {}
    for away in [*outages, *[False] * 200]:
        page, following = next_page(cells, places or {}, limit=limit, scan=9, away=frozenset({"b"} if away else ()))
        read += [(item["at"], item["cell"]) for item in page]
        if following is None and not away:
            break
        places = following if following is not None else places
        if following is None:
            return  # the list ended without the cell: its answer said `partial`
    assert sorted(read) == sorted((at, name) for name, known in cells.items() for at in known if at % 2 == 0)


def test_an_item_that_moves_to_the_end_meanwhile_is_neither_missed_nor_taken_for_read() -> None:
    cells = {"a": [2, 4, 6], "b": [8, 10]}
    first, places = next_page(cells, {}, limit=2, scan=9)
    assert [item["at"] for item in first] == [2, 4]
    cells["a"] = [4, 6, 12]
    second, places = next_page(cells, places or {}, limit=9, scan=9)
    assert [item["at"] for item in second] == [6, 8, 10, 12]
    assert places is None


@pytest.mark.parametrize("cursor", ["", "x", "é", "W10", "WzEsMl0", "A" * 20_000])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(Problem) as refused:
        decode_places(cursor, FILTER)
    assert refused.value.code is Code.INVALID_CURSOR


def test_a_cursor_of_another_filter_or_with_places_of_another_kind_is_refused() -> None:
    with pytest.raises(Problem):
        decode_places(encode_places({}, {"path": "/v1/others"}), FILTER)
    forged = CellList(Place(None, ["text"]))
    with pytest.raises(Problem):
        forged.turn({"items": [{"at": 1}], "next_cursor": None}, ORDER)
