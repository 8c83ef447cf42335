"""Places in the log as readers hold them."""

import pytest

from statesvc.log.cursor import LogCursor, read_cursor


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("1.0", LogCursor(1, 0)),
        ("2.41", LogCursor(2, 41)),
        ("7", LogCursor(1, 7)),
        ("-1", LogCursor(1, -1)),
    ],
)
def test_a_cursor_names_epoch_and_index_and_an_index_alone_is_of_the_first_epoch(
    text: str, cursor: LogCursor
) -> None:
    assert read_cursor(text) == cursor
    assert read_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "x", "1.", ".1", "0.1", "01.1", "1.01", "1.-2", "1.1.1", " 1", "1\n", "9" * 40]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a place"):
        read_cursor(text)
