"""`GET /v1/stream`."""

from collections.abc import Callable
from typing import Annotated, Final, Self, cast

from aiohttp import web
from pydantic import Field, model_validator

from statesvc.addons.stream.frames import StreamedData
from statesvc.addons.stream.streams import EVENT_STREAM, StreamLimits, Streams
from statesvc.addons.stream.tickets import PATH, Tickets
from statesvc.api import kit
from statesvc.api.transition_operations import TransitionChoice
from statesvc.database.wakeups.wakeup import SEALED
from statesvc.files.archive_folder import archive_folder
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.signed_token import TOKEN_CHARS_MAX, TokenSigner
from statesvc.http.operation import Route, parameters
from statesvc.log.cursor import CURSOR_PATTERN, LogCursor, read_cursor
from statesvc.log.history import History
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component

LAST_EVENT_ID: Final = "Last-Event-ID"


class StreamParameters(TransitionChoice):
    """Selection of transitions, and the position to start at."""

    after: Annotated[
        kit.CursorText | None,
        Field(
            description=(
                "The `id` of the last event that the client has; -1: from the first entry on. Left"
                f" out: from now on. The header `{LAST_EVENT_ID}`, which browsers send when they"
                " come back, goes before it."
            ),
        ),
    ] = None
    ticket: Annotated[
        str | None,
        Field(
            max_length=TOKEN_CHARS_MAX,
            description=(
                "In place of a key: of `POST /v1/stream/tickets`, which names carriers and"
                " statuses."
            ),
        ),
    ] = None

    @model_validator(mode="after")
    def _is_selected_once(self) -> Self:
        if self.ticket is not None and (self.carrier_id or self.status):
            raise ValueError(
                "the `ticket` names carriers and statuses: give it alone, or with `after`"
            )
        return self


def served_stream(
    launch: Launch, base: Runtime, keys: Keys, pressure: Callable[[], bool]
) -> tuple[list[Route], Component]:
    """Return the stream as the role api serves it, and the component that runs along."""
    settings = launch.settings
    streams = Streams(
        base.pool,
        archive=History(archive_folder(settings)),
        keys=keys,
        listener=base.listener,
        woken=base.listener.event(SEALED),
        telemetry=base.telemetry,
        limits=StreamLimits(
            clients_max=settings.stream.clients_max,
            clients_per_key_max=settings.stream.clients_per_key_max,
            send_seconds=settings.stream.send_seconds,
        ),
        pressure=pressure,
    )
    route = stream_route(streams, Tickets(TokenSigner(base.keyring.token_key)))
    return [route], Component(name="streams", run=streams.run, stop=streams.stop)


def stream_route(streams: Streams, tickets: Tickets) -> Route:
    async def stream(request: web.Request) -> web.StreamResponse:
        asked = parameters(request, StreamParameters)
        return await streams.serve(
            request,
            selection=asked if asked.ticket is None else tickets.selection(asked.ticket),
            after=_last_event_id(request, asked.after),
            # the ticket is the whole right: no cookie or key of the browser is involved, so a page
            # of any origin may read what it opens
            any_origin=asked.ticket is not None,
        )

    return Route(
        "GET",
        PATH,
        stream,
        kit.operation(
            operation_id="stream_transitions",
            summary="Stream changes of status as they happen",
            description=(
                "Server-Sent Events from the sealed log, each once, in its order. Come back"
                f" with the last `id` as `{LAST_EVENT_ID}` (or `after`) and nothing is missed"
                " or repeated, even after you were cut off for reading too slowly. 410: the"
                " log was restored from a backup and lost what the client has seen;"
                " `go_on_after` says where to go on. `event: reset`: the id is not of this"
                " log; read what you need anew, what follows is from now on. `event: opened`"
                " comes first; with its `id` a client that is cut off before any change comes"
                " back. A comment comes every 15 s. Ends when the process stops or has no room"
                " for streams."
            ),
            scope="read",
            credential=tickets.credential,
            tag="log",
            parameters=StreamParameters,
            request_headers={
                LAST_EVENT_ID: kit.RequestHeader(
                    "The `id` of the last event that the client has; goes before `after`.",
                    CURSOR_PATTERN,
                )
            },
            streamed=cast("type[StreamedData]", StreamedData),
            response_types=(EVENT_STREAM,),
            statuses={kit.OK: "events `shipment.status_changed` with this as their `data`"},
            problems=(
                kit.Code.CURSOR_LOST,
                kit.Code.TOO_MANY_REQUESTS,
                kit.Code.OVERLOADED,
                kit.Code.NOT_READY,
            ),
            rules=("A `ticket` names carriers and statuses: it comes alone, or with `after`.",),
            deadline_seconds=None,
        ),
    )


def _last_event_id(request: web.Request, after: str | None) -> LogCursor | None:
    given = request.headers.get(LAST_EVENT_ID) or after
    try:
        return None if given is None else read_cursor(given)
    except ValueError:
        violation = kit.Violation(
            f"/header/{LAST_EVENT_ID}", "must be the `id` of an event of this stream"
        )
        raise kit.Problem(
            kit.Code.INVALID_REQUEST, "the headers break the contract", violations=[violation]
        ) from None
