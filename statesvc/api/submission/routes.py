"""The call: an event as JSON, or many as lines.

A bad line is `invalid` by itself; the others take effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, NotRequired, cast
from uuid import UUID

from aiohttp import web
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from pydantic import Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from events.carriers.canonical import (
    CanonicalEvent,
    FieldFault,
    InvalidEventError,
    lines,
    read_line,
    unknown_members,
)
from events.crypto.keyring import Keyring
from events.event import Event
from events.vocabulary import Verdict
from statesvc.api.submission.submit import LockedShipments, Submitted, read_clock, submit
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, Wakes
from statesvc.http.closed_model import ClosedModel
from statesvc.http.middleware import whole_body
from statesvc.http.operation import (
    PREFER_TAKEN,
    PREFERENCE_APPLIED,
    Operation,
    Reply,
    Route,
    answer,
    operation,
    parameters,
)
from statesvc.http.preferences import STRICT, WARNINGS, RequestWarning, proposed
from statesvc.http.problem import CREATED, OK, Code, Problem, Violation
from statesvc.log.history import History
from statesvc.shipments.models import text_of

LINES_MAX: Final = 1000
# Clocks differ, and zones are mistaken; years are typing errors.
AHEAD_MAX: Final = timedelta(days=1)
_AHEAD: Final = InvalidEventError(
    (FieldFault("/occurred_at", "lies more than a day ahead: is the year right, or the offset?"),)
)
_UNKNOWN_CARRIER: Final = InvalidEventError(
    (FieldFault("/carrier_id", "should be a known carrier_id; `statesvc carriers` lists them"),)
)
_JSON: Final = "application/json"
_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")


class EventVerdict(TypedDict):
    """The outcome of a single event."""

    verdict: Verdict
    event_id: str
    message_id: UUID
    warnings: NotRequired[list[RequestWarning]]


class LineVerdict(TypedDict):
    """The outcome of a line, counted from 1."""

    line: int
    verdict: Annotated[str, text_of(Literal["appended", "duplicate", "conflict", "invalid"])]
    errors: NotRequired[
        Annotated[
            list[dict[str, str]],
            Field(description="Of an invalid line: pointer and detail of each fault."),
        ]
    ]
    warnings: NotRequired[list[RequestWarning]]


class LineVerdicts(TypedDict):
    """A verdict for each line that is not blank."""

    results: list[LineVerdict]


Verdicts = EventVerdict | LineVerdicts


class SubmissionParameters(ClosedModel):
    """Handling of the events."""

    notify: Annotated[
        bool,
        Field(
            description=(
                "`false`: no subscription is sent what these events change, as for the import of a"
                " history. Their entries in the log say so; state, history, stream and feed have"
                " them as any others."
            )
        ),
    ] = True


@dataclass(frozen=True, slots=True)
class Submission:
    pool: AsyncConnectionPool[AsyncConnection[Any]]
    keyring: Keyring
    waker: Wakes
    writer: str
    archive: History

    async def receive(self, request: web.Request) -> Reply[Verdicts]:
        """Append the events; answer after they are durable, with their verdicts."""
        body = await whole_body(request)
        notify = parameters(request, SubmissionParameters).notify
        if request.content_type in _LINES:
            return await self._many(request, body, notify=notify)
        if request.content_type == _JSON:
            return await self._one(request, body, notify=notify)
        raise Problem(
            Code.UNSUPPORTED_MEDIA_TYPE,
            f"send one event as {_JSON}, or one per line as {_LINES[0]}",
        )

    async def _one(self, request: web.Request, body: bytes, *, notify: bool) -> Reply[Verdicts]:
        stated, warnings = self._event(body, at="/body", is_strict=request[STRICT])
        (event,) = await self._in_reach([stated])
        if isinstance(event, InvalidEventError):
            violations = [Violation(f"/body{fault.pointer}", fault.why) for fault in event.faults]
            raise Problem(
                Code.INVALID_REQUEST,
                "this is no canonical event; /docs shows its fields",
                violations=violations,
            )
        submitted = await self._submit([event], body, notify=notify)
        (verdict,) = submitted.verdicts
        if verdict is Verdict.CONFLICT:
            raise Problem(
                Code.CONFLICT,
                "an event with this carrier_id and event_id states other facts; nothing was"
                " changed, the contradiction is in the audit",
                members={"event_id": event.event_id},
            )
        applied: EventVerdict = {
            "verdict": verdict,
            "event_id": event.event_id,
            "message_id": submitted.message_id,
        }
        if warnings:
            applied["warnings"] = request[WARNINGS] = warnings
        return answer(applied, status=CREATED if verdict is Verdict.APPENDED else OK)

    async def _many(self, request: web.Request, body: bytes, *, notify: bool) -> Reply[Verdicts]:
        numbered = lines(body)
        if len(numbered) > LINES_MAX:
            raise Problem(
                Code.TOO_LARGE,
                f"a request has at most {LINES_MAX} lines; send the rest in another one",
            )
        stated = [self._event(line, at="", is_strict=request[STRICT]) for _, line in numbered]
        in_reach = await self._in_reach([event for event, _ in stated])
        read = [(number, event) for (number, _), event in zip(numbered, in_reach, strict=True)]
        events = [event for _, event in read if isinstance(event, Event)]
        # before the append: what is stored is bound by the commitment in each event
        taken = _taken(body, numbered, read)
        verdicts = iter(
            (await self._submit(events, taken, notify=notify)).verdicts if events else ()
        )
        results: list[LineVerdict] = []
        request[WARNINGS] = []
        for (number, event), (_, warnings) in zip(read, stated, strict=True):
            if isinstance(event, InvalidEventError):
                errors = [{"pointer": fault.pointer, "detail": fault.why} for fault in event.faults]
                # in place of a verdict: only valid lines were submitted, in their order
                results.append({"line": number, "verdict": "invalid", "errors": errors})
                continue
            result: LineVerdict = {"line": number, "verdict": next(verdicts).value}
            if warnings:
                result["warnings"] = warnings
                request[WARNINGS] += warnings
            results.append(result)
        return answer({"results": results})

    def _event(
        self, line: bytes, *, at: str, is_strict: bool
    ) -> tuple[Event | InvalidEventError, list[RequestWarning]]:
        """Read an event with its other statements; strict handling refuses these as invalid."""
        try:
            event = read_line(line, self.keyring.carrier_digest)
        except InvalidEventError as error:
            return error, []
        # a typing error would open a stream that no later event of the carrier joins
        if event.carrier_id not in CARRIERS:
            return _UNKNOWN_CARRIER, []
        unknown = unknown_members(line)
        if unknown and is_strict:
            return (
                InvalidEventError(
                    tuple(
                        FieldFault(each.pointer, f"is no member of it{proposed(each.proposal)}")
                        for each in unknown
                    )
                ),
                [],
            )
        return event, [
            {"pointer": at + each.pointer, "proposal": each.proposal} for each in unknown
        ]

    async def _in_reach(
        self, stated: "Sequence[Event | InvalidEventError]"
    ) -> "Sequence[Event | InvalidEventError]":
        """Refuse times more than a day ahead.

        After an event with a wrong year, all events for years would count as earlier.
        """
        times = [event.occurred_at for event in stated if isinstance(event, Event)]
        latest = datetime.now(UTC) + AHEAD_MAX
        if times and max(times) > latest:
            # the service's clock is the database's, which is asked only where it matters
            async with self.pool.connection() as connection:
                latest = max(latest, await read_clock(connection) + AHEAD_MAX)
        return [
            _AHEAD if isinstance(event, Event) and event.occurred_at > latest else event
            for event in stated
        ]

    async def _submit(self, events: Sequence[Event], body: bytes, *, notify: bool) -> Submitted:
        outcome = await submit(
            self.pool,
            self.keyring,
            events,
            body=body,
            writer=self.writer,
            archive=self.archive,
            notify=notify,
        )
        if isinstance(outcome, LockedShipments):
            raise Problem(
                Code.HELD,
                f"on hold: {', '.join(outcome.carrier_ids)}; nothing was applied, send it again"
                " after the release",
            )
        # after the commit: whoever wakes before it finds nothing
        self.waker.wake(LOG)
        # duplicates and silent imports notify nobody
        if outcome.changes:
            self.waker.wake(OUTBOX)
        return outcome


def _taken(
    body: bytes,
    numbered: Sequence[tuple[int, bytes]],
    read: Sequence[tuple[int, Event | InvalidEventError]],
) -> bytes:
    """Return the stored part of a body: the lines that hold events.

    An invalid line may name any person, out of reach of an erasure: it is not stored.
    """
    taken = [
        line
        for (_, line), (_, event) in zip(numbered, read, strict=True)
        if isinstance(event, Event)
    ]
    # the bytes as they came where nothing is left out: evidence shows them
    return body if len(taken) == len(numbered) else b"\n".join(taken)


def routes(
    *,
    pool: AsyncConnectionPool[AsyncConnection[Any]],
    keyring: Keyring,
    waker: Wakes,
    writer: str,
    archive: History,
) -> Sequence[Route]:
    """Return the routes. `writer` names this process in the log."""
    submission = Submission(pool, keyring, waker, writer, archive)
    contract: Operation[Verdicts] = operation(
        operation_id="submit_events",
        rules=(
            (
                "The carrier is known, the number holds more than blanks and hyphens, and ids hold"
                " no control characters."
            ),
            "Times lie in the years 1970 to 9998, `occurred_at` not more than a day ahead.",
            "Number, ids, codes and place together have 2,000 bytes at most.",
        ),
        summary="Append canonical events",
        description=(
            f"One event as {_JSON}: 201 appended, 200 duplicate, 409 conflict. Many, one per line,"
            f" as {_LINES[0]}: 200 with a verdict for each line. A member that an event does not"
            " have is ignored, with a warning."
        ),
        scope="ingest",
        tag="events",
        parameters=SubmissionParameters,
        request_headers=PREFER_TAKEN,
        response_headers=PREFERENCE_APPLIED,
        accepts={_JSON: CanonicalEvent, _LINES[0]: bytes},
        response=cast("type[Verdicts]", Verdicts),
        statuses={
            CREATED: "appended",
            OK: "a duplicate; or, for lines, `results` with a verdict for each",
        },
        problems=(
            Code.CONFLICT,
            Code.INVALID_REQUEST,
            Code.UNSUPPORTED_MEDIA_TYPE,
            Code.TOO_LARGE,
            Code.HELD,
            Code.LOG_UNAVAILABLE,
        ),
    )
    return [Route("POST", "/v1/events", submission.receive, contract)]
