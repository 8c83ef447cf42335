"""The call: one event as JSON, or many as lines. A bad line is `invalid` by itself; the others take effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from aiohttp import web
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, Field

from events.carriers import CARRIERS
from events.carriers.canonical import FieldFault, InvalidEventError, lines, read_line
from events.crypto.keyring import Keyring
from events.event import Event
from events.vocabulary import Verdict
from statesvc.api.submission.submit import Held, Submitted, submit
from statesvc.database.wakeups.channels import LOG, OUTBOX
from statesvc.http.operation import Route, operation
from statesvc.http.problem import CREATED, OK, Code, Flaw, Problem
from statesvc.http.response import answer
from statesvc.log.archive.log_archive import LogArchive

LINES_MAX: Final = 1000
_JSON: Final = "application/json"
_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")


class Wakes(Protocol):
    """What of a waker is needed."""

    def wake(self, channel: str) -> None:
        """Says, after commit, that there is something to do."""


class EventVerdict(BaseModel):
    """What became of a single event."""

    verdict: Verdict
    event_id: str
    message_id: str


class LineVerdict(BaseModel):
    """What became of one line, counted from 1."""

    line: int
    verdict: Literal["appended", "duplicate", "conflict", "invalid"]
    errors: list[dict[str, str]] = Field(default_factory=list, description="Of an invalid line: pointer and detail of each fault.")


class LineVerdicts(BaseModel):
    """A verdict for each line that is not blank."""

    results: list[LineVerdict]


@dataclass(frozen=True, slots=True)
class Submission:
    """The handler."""

    pool: AsyncConnectionPool[AsyncConnection[Any]]
    keyring: Keyring
    waker: Wakes
    writer: str
    archive: LogArchive

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Answers after the events are durable, with what they did."""
        body = await request.read()
        if request.content_type in _LINES:
            return await self._many(body)
        if request.content_type == _JSON:
            return await self._one(body)
        raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, f"send one event as {_JSON}, or one a line as {_LINES[0]}")

    async def _one(self, body: bytes) -> web.StreamResponse:
        event = _event(body)
        if isinstance(event, InvalidEventError):
            flaws = [Flaw(f"/body{fault.pointer}", fault.why) for fault in event.faults]
            raise Problem(Code.INVALID_REQUEST, "this is no canonical event; /docs shows its fields", flaws=flaws)
        submitted = await self._submit([event], body)
        (verdict,) = submitted.verdicts
        if verdict is Verdict.CONFLICT:
            raise Problem(
                Code.CONFLICT,
                "an event with this carrier_id and event_id states other facts; nothing was changed, the contradiction is in the audit",
                members={"event_id": event.event_id},
            )
        told = {"verdict": verdict.value, "event_id": event.event_id, "message_id": str(submitted.message_id)}
        return answer(told, status=CREATED if verdict is Verdict.APPENDED else OK)

    async def _many(self, body: bytes) -> web.StreamResponse:
        numbered = lines(body)
        if len(numbered) > LINES_MAX:
            raise Problem(Code.TOO_LARGE, f"a request has at most {LINES_MAX} lines; send the rest in another one")
        read = [(number, _event(line)) for number, line in numbered]
        events = [event for _, event in read if isinstance(event, Event)]
        verdicts = iter((await self._submit(events, body)).verdicts if events else ())
        results: list[dict[str, Any]] = []
        for number, event in read:
            if isinstance(event, InvalidEventError):
                errors = [{"pointer": fault.pointer, "detail": fault.why} for fault in event.faults]
                results.append({"line": number, "verdict": "invalid", "errors": errors})
            else:
                results.append({"line": number, "verdict": next(verdicts).value})
        return answer({"results": results})

    async def _submit(self, events: Sequence[Event], body: bytes) -> Submitted:
        outcome = await submit(self.pool, self.keyring, events, body=body, writer=self.writer, archive=self.archive)
        if isinstance(outcome, Held):
            raise Problem(Code.HELD, f"on hold: {', '.join(outcome.carrier_ids)}; nothing was applied, send it again after the release")
        self.waker.wake(LOG)
        if outcome.told:
            self.waker.wake(OUTBOX)
        return outcome


def _event(line: bytes) -> Event | InvalidEventError:
    try:
        event = read_line(line)
    except InvalidEventError as error:
        return error
    if event.carrier_id not in CARRIERS:
        return InvalidEventError((FieldFault("/carrier_id", "should be a known carrier_id; `statesvc carriers` lists them"),))
    return event


def routes(
    *, pool: AsyncConnectionPool[AsyncConnection[Any]], keyring: Keyring, waker: Wakes, writer: str, archive: LogArchive
) -> Sequence[Route]:
    """The call. `writer` names this process in the log."""
    submission = Submission(pool, keyring, waker, writer, archive)
    contract = operation(
        summary="Append canonical events",
        description=f"One event as {_JSON}: 201 appended, 200 duplicate, 409 conflict. Many, one a line, as {_LINES[0]}: 200 with a "
        "verdict for each line.",
        scope="ingest",
        tag="events",
        response=EventVerdict,
        statuses={CREATED: "appended", OK: "a duplicate; or, for lines, `results` with a verdict for each"},
        problems=(Code.CONFLICT, Code.INVALID_REQUEST, Code.UNSUPPORTED_MEDIA_TYPE, Code.TOO_LARGE, Code.HELD, Code.LOG_UNAVAILABLE),
    )
    return [Route("POST", "/v1/events", submission.receive, contract)]
