"""What verification reads of each kind of entry."""

from typing import Any, cast

import pytest

from statesvc.log.entry_columns import ENTRY_KINDS, EntryKind


@pytest.mark.parametrize("kind", ENTRY_KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_read_with_its_epoch_which_is_the_first_where_none_is_written(kind: EntryKind) -> None:
    struct = cast("Any", kind.decode).__self__.type
    defaults = dict(zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False))
    assert defaults["epoch"] == 1
