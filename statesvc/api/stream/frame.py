"""What goes over the wire (WHATWG HTML, section Server-sent events). Pure.

Only transitions have an `id`: a control frame with one would move the place from which a client resumes.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import orjson

from events.entry import rfc3339
from statesvc.log.transitions import SealedTransition

PING: Final = b": ping\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """One transition as it is sent, and what it is selected by."""

    index: int
    carrier_id: str
    status: str
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which transitions a client asked for; an empty collection: any."""

    carriers: Collection[str] = frozenset()
    statuses: Collection[str] = frozenset()

    def takes(self, frame: Frame) -> bool:
        """True where the client wants it."""
        return (not self.carriers or frame.carrier_id in self.carriers) and (not self.statuses or frame.status in self.statuses)


def frame_of(transition: SealedTransition) -> Frame:
    """The data is that of a thin notification, and where and when the log has it."""
    data = orjson.dumps(
        {
            "carrier_id": transition.carrier_id,
            "tracking_number": transition.tracking_number,
            "from": transition.from_status,
            "to": transition.to_status,
            "occurred_at": rfc3339(transition.occurred_at),
            "sequence": transition.sequence,
            "log_index": transition.index,
            "recorded_at": rfc3339(transition.recorded_at),
        }
    )
    text = b"id: %d\nevent: shipment.status_changed\ndata: %b\n\n" % (transition.index, data)
    return Frame(transition.index, transition.carrier_id, transition.to_status, text)


def retry_frame(seconds: float) -> bytes:
    """How long the client is to wait before it comes back."""
    return b"retry: %d\n\n" % round(seconds * 1000)


def reset_frame(*, asked: int, tree_size: int) -> bytes:
    """The index that the client has seen is not of this log: what it knows is of another one. It is told what happens from now on."""
    return b"event: reset\ndata: %b\n\n" % orjson.dumps({"after": asked, "tree_size": tree_size})
