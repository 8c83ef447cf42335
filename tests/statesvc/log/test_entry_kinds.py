"""Documents that verification reads of each kind of entry."""

import json
from pathlib import Path
from typing import Any, Final, cast

import pytest

from events.entry.kinds import EntryName
from statesvc.log.entry_kinds import ENTRY_KINDS, EntryKind, read_time

ROOT: Final = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", ENTRY_KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_read_with_its_epoch_which_is_the_first_where_none_is_written(
    kind: EntryKind,
) -> None:
    struct = cast("Any", kind.decode).__self__.type
    defaults = dict(
        zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False)
    )
    assert defaults["epoch"] == 1


def test_a_time_without_an_offset_is_none() -> None:
    assert read_time("2000-01-01T02:00:00.000001+02:00")[0] == 1
    with pytest.raises(ValueError, match="offset"):
        read_time("2000-01-01T00:00:00")


def test_the_table_has_each_kind_in_the_order_of_a_batch() -> None:
    assert [kind.name for kind in ENTRY_KINDS] == list(EntryName)


@pytest.mark.parametrize("kind", ENTRY_KINDS, ids=lambda kind: kind.name)
def test_the_table_names_modules_and_calls_that_exist(kind: EntryKind) -> None:
    assert (ROOT / kind.writer).is_file()
    assert [
        name
        for name in kind.verified
        if not (ROOT / "statesvc/addons/verify" / f"{name}.py").is_file()
    ] == []
    document = json.loads((ROOT / "clients/openapi.json").read_text("utf-8"))
    calls = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert [call for call in kind.shown if call not in calls] == []


def test_the_page_of_entries_shows_the_table() -> None:
    page = (ROOT / "docs/entries.md").read_text("utf-8")
    rows = [f"| `{kind.name}` | {kind.says} | {kind.written} |" for kind in ENTRY_KINDS]
    assert "\n".join(rows) in page
