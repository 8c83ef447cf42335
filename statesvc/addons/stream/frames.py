"""Transitions as frames. Pure.

A frame is the text on the wire (WHATWG HTML, section Server-sent events). An `id` is the place from
which a client resumes: that of a transition, or the start of the stream (`opened`). Pings have
none.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from statesvc.api.transition_operations import StreamedTransition, streamed
from statesvc.log.cursor import LogCursor
from statesvc.log.feed import SealedTransition

PING: Final = b": ping\n\n"


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
    return Frame(transition.carrier_id, transition.to_status, text)


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
