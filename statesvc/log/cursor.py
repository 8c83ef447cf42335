"""Cursors of the log's readers: `epoch.index` of the last entry read.

After a fork the log has other entries at the lost indexes. A cursor below them is still valid; a
cursor beyond them is refused with the position to continue from, because it would silently skip the
new entries.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from events.entry.kinds import FIRST_EPOCH
from statesvc.log.checkpoints import read_epochs

CURSOR_PATTERN: Final = r"^([1-9][0-9]{0,8}\.)?(-1|0|[1-9][0-9]{0,17})$"
_CURSOR: Final = re.compile(CURSOR_PATTERN)


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Position after the entry `index` of the log as it was in `epoch`; -1: before the first."""

    epoch: int
    index: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.index}"


def read_cursor(text: str) -> LogCursor:
    """Parse a cursor; an index alone is of the first epoch. Raises ValueError."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise ValueError("not a place in a log")
    epoch, index = found.groups()
    return LogCursor(FIRST_EPOCH if epoch is None else int(epoch[:-1]), int(index))


class LostCursorError(LookupError):
    """Entries that the reader has seen are no longer in the log.

    `go_on`: the last of them that still is.
    """

    def __init__(self, asked: LogCursor, go_on: LogCursor) -> None:
        left = "none" if go_on.index < 0 else f"those up to index {go_on.index}"
        super().__init__(
            f"the log was restored from a backup and is in epoch {go_on.epoch}: of the entries that"
            f" you have read ({asked}) it has {left}. Drop what you know of the later ones and go"
            f" on after {go_on}; the first entry there says what was lost"
        )
        self.asked = asked
        self.go_on = go_on


async def resume(connection: AsyncConnection[Any], asked: LogCursor, *, epoch: int) -> LogCursor:
    """Return the same position in the present epoch. Raises LostCursorError.

    Returns `asked` itself if it is of the present epoch, or of one that this log never had.

    """
    if asked.epoch >= epoch or asked.index < 0:
        return asked if asked.index >= 0 else LogCursor(epoch, asked.index)
    common = (await read_epochs(connection)).common(asked.epoch)
    if asked.index >= common:
        raise LostCursorError(asked, LogCursor(epoch, common - 1))
    return LogCursor(epoch, asked.index)
