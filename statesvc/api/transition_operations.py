"""`GET /v1/feed/transitions`: changes of status, page by page.

Same items, same selection, same cursors as the stream of the add-on: read to the end, then follow
the stream after the last `cursor`; no transition is missed or repeated in between. The whole log
with its proofs is `/v1/feed`, for scope `audit`.
"""

from typing import Annotated, Any, Final

from psycopg import AsyncConnection
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from events.entry.kinds import rfc3339
from events.vocabulary import Status
from statesvc.api import kit
from statesvc.api.log_operations import FEED_DEFAULT, FEED_MAX, lost_cursor
from statesvc.log.checkpoints import LogEnd, latest_head
from statesvc.log.cursor import LogCursor, LostCursorError, read_cursor, resume
from statesvc.log.feed import MissingEntryError, SealedTransition, read_transitions
from statesvc.shipments.models import StatusChange, TimeText

_CHOICES_MAX: Final = 64


class TransitionChoice(BaseModel):
    """Transitions that a client asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    carrier_id: Annotated[
        list[kit.KnownCarrier],
        Field(max_length=_CHOICES_MAX, description="Only of these carriers; none: of all."),
    ] = []
    status: Annotated[
        list[Status],
        Field(max_length=_CHOICES_MAX, description="Only to these statuses; none: to any."),
    ] = []

    def takes(self, *, carrier_id: str, status: str) -> bool:
        """Return whether the client wants a transition of this carrier to this status."""
        return (not self.carrier_id or carrier_id in self.carrier_id) and (
            not self.status or status in self.status
        )


class StreamedTransition(StatusChange):
    """The `data` of an event `shipment.status_changed`.

    That of a thin notification, with the index and the time of its log entry.
    """

    carrier_id: str
    tracking_number: str
    occurred_at: Annotated[TimeText, Field(description="When the carrier says it happened.")]
    sequence: Annotated[
        int, Field(description="The shipment's version that changed it: as in notifications.")
    ]
    log_index: Annotated[
        int,
        Field(description="Its place in the log; the event's `id` has the log's epoch before it."),
    ]
    recorded_at: Annotated[TimeText, Field(description="When we knew it.")]


def streamed(transition: SealedTransition) -> StreamedTransition:
    """Return the transition as it is sent."""
    return {
        "carrier_id": transition.carrier_id,
        "tracking_number": transition.tracking_number,
        "from": transition.from_status,
        "to": transition.to_status,
        "occurred_at": transition.occurred_at.isoformat(),
        "sequence": transition.sequence,
        "log_index": transition.index,
        "recorded_at": rfc3339(transition.recorded_at),
    }


class TransitionFeedParameters(TransitionChoice):
    """Selection of transitions, and the position to start at."""

    after: Annotated[
        kit.CursorText,
        Field(
            description=(
                "`cursor` of the answer before, or the `id` of an event of the stream. Left out:"
                " from the first entry on."
            ),
        ),
    ] = "-1"
    limit: Annotated[
        int, Field(ge=1, le=FEED_MAX, description="Transitions per answer, at most.")
    ] = FEED_DEFAULT


class TransitionFeed(TypedDict):
    """Transitions in the order of the log."""

    items: list[StreamedTransition]
    next_cursor: Annotated[
        str | None,
        Field(
            description=(
                "`after` of the next call; null where this was the end for now. A page with one may"
                " be empty."
            )
        ),
    ]
    cursor: Annotated[
        str,
        Field(description="Where this answer ends: `after` of the next call, or of the stream."),
    ]


@kit.operation(
    "GET /v1/feed/transitions",
    scope="read",
    tag="log",
    problems=(kit.Code.INVALID_CURSOR, kit.Code.CURSOR_LOST, kit.Code.LOG_UNAVAILABLE),
)
async def list_transitions(
    context: kit.Context, call: kit.Call[TransitionFeedParameters, None]
) -> TransitionFeed:
    """List changes of status from the beginning.

    The items of `/v1/stream`, in pages and from any place of the log: to fill a store with the
    past. Go on with `after` set to `cursor` while `next_cursor` is not null, then open the
    stream with the same `after`. 410 as there.
    """
    wanted = call.parameters
    async with context.pool.connection() as connection:
        end = LogEnd.of(await latest_head(connection))
        try:
            after = await resume(connection, read_cursor(wanted.after), epoch=end.epoch)
            if after.epoch > end.epoch or after.index >= max(end.tree_size, 1):
                raise kit.Problem(
                    kit.Code.INVALID_CURSOR,
                    f"the log has {end.tree_size} entries: `after` was given by another log",
                )
            entries = range(after.index + 1, end.tree_size)
            items, last = await _read(connection, context, wanted, entries)
        except LostCursorError as error:
            raise lost_cursor(error) from error
        except MissingEntryError as error:
            raise kit.Problem(kit.Code.INTERNAL_ERROR, str(error)) from error
    cursor = str(LogCursor(end.epoch, last))
    more = last + 1 < end.tree_size
    return {"items": items, "next_cursor": cursor if more else None, "cursor": cursor}


async def _read(
    connection: AsyncConnection[Any],
    context: kit.Context,
    wanted: TransitionFeedParameters,
    entries: range,
) -> tuple[list[StreamedTransition], int]:
    """Return the wanted transitions, and the last index that was read."""
    items: list[StreamedTransition] = []
    archive = context.log_archive()
    begin, end = entries.start, entries.stop
    for _ in range(context.limits.feed_reads):
        if begin >= end:
            break
        page_end = min(begin + context.limits.feed_entries, end)
        for transition in await read_transitions(
            connection, begin=begin, end=page_end, archive=archive
        ):
            if wanted.takes(carrier_id=transition.carrier_id, status=transition.to_status):
                items.append(streamed(transition))
                if len(items) == wanted.limit:
                    return items, transition.index
        begin = page_end
    return items, begin - 1


OPERATIONS: Final = (list_transitions,)
