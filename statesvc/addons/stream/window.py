"""The newest transitions as frames, encoded once and shared by all clients. Pure.

A frame is the text on the wire (WHATWG HTML, section Server-sent events). An `id` is the place from
which a client resumes: that of a transition, or the start of the stream (`opened`). Pings have
none.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from events.entry.kinds import FIRST_EPOCH
from statesvc.api.transition_operations import StreamedTransition, TransitionChoice, streamed
from statesvc.log.cursor import LogCursor
from statesvc.log.transitions import SealedTransition

PING: Final = b": ping\n\n"
FRAMES_MAX: Final = 4096


class StreamReset(TypedDict):
    """The `data` of an event `reset`: the client's entries are not of this log."""

    after: Annotated[str, Field(description="What the client had.")]
    tree_size: Annotated[int, Field(description="How many entries the log has.")]


class StreamOpened(TypedDict):
    """The `data` of an event `opened`, the first of a stream."""

    cursor: Annotated[
        str,
        Field(description="Where this stream begins: to come back with before its first change."),
    ]


StreamedData = StreamedTransition | StreamReset | StreamOpened


@dataclass(frozen=True, slots=True)
class Frame:
    """A transition as it is sent, with the fields that select it."""

    index: int
    carrier_id: str
    status: str
    text: bytes = field(repr=False)


def frame_of(transition: SealedTransition, *, epoch: int) -> Frame:
    """Format the transition as an event of the stream. `epoch`: of the log now."""
    cursor = str(LogCursor(epoch, transition.index)).encode()
    text = b"id: %b\nevent: shipment.status_changed\ndata: %b\n\n" % (
        cursor,
        orjson.dumps(streamed(transition)),
    )
    return Frame(transition.index, transition.carrier_id, transition.to_status, text)


def opening_frame(*, retry_seconds: float, place: LogCursor) -> bytes:
    """Format the client's delay before it reconnects, and its position.

    It may be cut off before the first transition.
    """
    data: StreamOpened = {"cursor": str(place)}
    # an event with data: parsers (eventsource-parser among them) drop the id of a block that has
    # none
    return b"retry: %d\nid: %b\nevent: opened\ndata: %b\n\n" % (
        round(retry_seconds * 1000),
        str(place).encode(),
        orjson.dumps(data),
    )


def reset_frames(
    *, retry_seconds: float, asked: LogCursor, tree_size: int, place: LogCursor
) -> bytes:
    """Format a reset: the client's index, and so its knowledge, is of another log.

    It gets the transitions from now on.
    """
    data: StreamReset = {"after": str(asked), "tree_size": tree_size}
    # with the place in the event itself: who has one has the other
    return b"retry: %d\n\nid: %b\nevent: reset\ndata: %b\n\n" % (
        round(retry_seconds * 1000),
        str(place).encode(),
        orjson.dumps(data),
    )


@dataclass(frozen=True, slots=True)
class WindowStep:
    """Frames for a client, and its next index after them."""

    frames: Sequence[Frame]
    next_index: int


class Window:
    """Covers the log from index `begin` up to `end` without a gap.

    A client with its next index inside needs no database. Empty at `at`, until it is extended.
    Holds at most `frames_max` frames: the oldest leave first. All are of the same `epoch` of
    the log.
    """

    def __init__(
        self, at: int = 0, *, epoch: int = FIRST_EPOCH, frames_max: int = FRAMES_MAX
    ) -> None:
        self._frames_max = frames_max
        self._frames: list[Frame] = []
        self.epoch = epoch
        self.begin = at
        self.end = at

    def restart(self, at: int, *, epoch: int) -> None:
        """Empty the window, and go on from index `at`."""
        self._frames.clear()
        self.epoch = epoch
        self.begin = self.end = at

    def extend(self, frames: Sequence[Frame], *, end: int) -> None:
        """Take all transitions from the present end up to `end`."""
        self._frames += frames
        self.end = end
        surplus = len(self._frames) - self._frames_max
        if surplus > 0:
            # behind the last frame that leaves, not at the first that stays: the entries between
            # are no transitions
            self.begin = self._frames[surplus - 1].index + 1
            del self._frames[:surplus]

    def step(self, next_index: int, selection: TransitionChoice, *, limit: int) -> WindowStep:
        """Return at most `limit` frames of the selection from `next_index` on.

        `next_index` is not before `begin`.
        """
        chosen: list[Frame] = []
        for place in range(bisect_left(self._frames, next_index, key=_index), len(self._frames)):
            frame = self._frames[place]
            if selection.takes(carrier_id=frame.carrier_id, status=frame.status):
                if len(chosen) == limit:
                    return WindowStep(chosen, frame.index)
                chosen.append(frame)
        # to the end, even without a frame: a client with a narrow selection must not search again
        # and again
        return WindowStep(chosen, max(next_index, self.end))


def _index(frame: Frame) -> int:
    return frame.index
