"""When the worker looks for garbage: between batches, not in their midst.

A batch in progress is a hundred thousand objects that are all in use. Python's collector looks through them whenever some
ten thousand were made, finds nothing, and holds the interpreter's lock meanwhile: of the waits of more than 9 ms for it in a
flood most were those. What is in no cycle, so nearly all, is freed without it.
"""

import gc
from types import TracebackType
from typing import Final, Self

EVERY_SECONDS: Final = 30.0
LATEST_SECONDS: Final = 60.0
"""However much is in progress."""
_UNASKED_AFTER: Final = (200_000, 20, 20)
"""More than the batches of a flood have: it takes a defect to get there."""


class Garbage:
    """For the time of the block. Times are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._collected_at = now
        self._before = gc.get_threshold()

    def __enter__(self) -> Self:
        gc.set_threshold(*_UNASKED_AFTER)
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None) -> None:
        gc.set_threshold(*self._before)

    def may_collect(self, now: float, *, busy: bool) -> bool:
        """Told now and then; collects if it is time to, and answers whether it did. `busy`: something is in progress."""
        due = now - self._collected_at >= (LATEST_SECONDS if busy else EVERY_SECONDS)
        if due:
            self._collected_at = now
            gc.collect()
        return due
