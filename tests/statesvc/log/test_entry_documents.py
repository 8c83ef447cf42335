"""Documents that verification reads of each kind of entry."""

from typing import Any, cast

import pytest

from statesvc.log.entry_columns import ENTRY_KINDS, EntryKind, read_time


@pytest.mark.parametrize("kind", ENTRY_KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_read_with_its_epoch_which_is_the_first_where_none_is_written(kind: EntryKind) -> None:
    struct = cast("Any", kind.decode).__self__.type
    defaults = dict(zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False))
    assert defaults["epoch"] == 1


def test_a_time_without_an_offset_is_none() -> None:
    assert read_time("2000-01-01T02:00:00.000001+02:00")[0] == 1
    with pytest.raises(ValueError, match="offset"):
        read_time("2000-01-01T00:00:00")
