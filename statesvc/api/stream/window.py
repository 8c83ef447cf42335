"""The newest transitions, encoded once and shared by all clients. Pure.

It covers the log from index `begin` up to `end` without a gap: a client whose next index is inside needs no database.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statesvc.api.stream.frame import Frame, Selection

FRAMES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Step:
    """Frames for one client, and its next index after them."""

    frames: Sequence[Frame]
    next_index: int


class Window:
    """Empty at `at`, until it is extended. Holds at most `frames_max` frames: the oldest leave first."""

    def __init__(self, at: int = 0, *, frames_max: int = FRAMES_MAX) -> None:
        self._frames_max = frames_max
        self._frames: list[Frame] = []
        self.begin = at
        self.end = at

    def restart(self, at: int) -> None:
        """Forgets everything, and goes on from index `at`."""
        self._frames.clear()
        self.begin = self.end = at

    def extend(self, frames: Sequence[Frame], *, end: int) -> None:
        """Takes all transitions from the present end up to `end`."""
        self._frames += frames
        self.end = end
        surplus = len(self._frames) - self._frames_max
        if surplus > 0:
            self.begin = self._frames[surplus - 1].index + 1
            del self._frames[:surplus]

    def step(self, next_index: int, selection: Selection, *, limit: int) -> Step:
        """At most `limit` frames of the selection from `next_index` on, which is not before `begin`."""
        chosen: list[Frame] = []
        for place in range(bisect_left(self._frames, next_index, key=_index), len(self._frames)):
            frame = self._frames[place]
            if selection.takes(frame):
                if len(chosen) == limit:
                    return Step(chosen, frame.index)
                chosen.append(frame)
        return Step(chosen, max(next_index, self.end))


def _index(frame: Frame) -> int:
    return frame.index
