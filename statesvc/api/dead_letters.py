"""`GET /v1/dead-letters...`: what waits for a human."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from aiohttp import web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from events.errors import Cause
from statesvc.api.parameters import Name
from statesvc.dead_letters.listing import NEWEST, DeadLetterKind, Filter, list_dead_letters, show_dead_letter
from statesvc.http.answer import answer
from statesvc.http.keys import Connections
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem


class DeadLettersParameters(PageParameters):
    """Dead letters, the newest first."""

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    open: Annotated[bool | None, Field(description="`true`: not settled yet; `false`: settled. Left out: both.")] = None


class DeadLetterParameters(BaseModel):
    """One dead letter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[int, Field(ge=1, le=NEWEST)]


class DeadLetter(BaseModel):
    """One thing that waits for a human, or that a human settled. Holds nothing of the message."""

    model_config = ConfigDict(extra="forbid")

    dead_letter_id: int
    kind: DeadLetterKind
    cause: Cause
    carrier_id: str
    created_at: AwareDatetime
    message_id: Annotated[UUID | None, Field(description="Of a code: the message that said it first.")]
    received_at: AwareDatetime | None
    raw_type: str | None
    raw_code: str | None
    webhook_id: str | None
    detail: str
    attempts: int
    worker: str | None
    normalizer: str | None
    resolved_at: AwareDatetime | None
    resolution: Literal["replayed", "discarded"] | None
    resolved_by: str | None
    why: str | None


class Statements(BaseModel):
    """What the log holds of an unknown code."""

    model_config = ConfigDict(extra="forbid")

    events: int
    shipments: int
    counts_capped: Annotated[bool, Field(description="The counts mean: at least so many.")]
    message_ids: Annotated[list[UUID], Field(description="Some messages that said it, to look at.")]


class ShownDeadLetter(DeadLetter):
    """A dead letter; of an unknown code, with what the log holds of it."""

    statements: Statements | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The handlers."""

    pool: Connections

    async def list(self, request: web.Request) -> web.StreamResponse:
        """A page, newest first."""
        asked = parameters(request, DeadLettersParameters)
        wanted = Filter(kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, is_open=asked.open)
        bound_to: dict[str, Any] = {"list": "dead-letters", **asdict(wanted)}
        before = NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if not isinstance(before, int) or not 0 < before <= NEWEST:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            letters, next_before = await list_dead_letters(connection, wanted, before=before, limit=asked.limit)
        cursor = None if next_before is None else encode_cursor([next_before], bound_to)
        return answer({"items": letters, "next_cursor": cursor})

    async def show(self, request: web.Request) -> web.StreamResponse:
        """One dead letter."""
        asked = parameters(request, DeadLetterParameters)
        async with self.pool.connection() as connection:
            shown = await show_dead_letter(connection, asked.id)
        if shown is None:
            raise Problem(Code.NOT_FOUND, f"no dead letter has the id {asked.id}")
        letter, statements = shown
        return answer({**asdict(letter), "statements": statements})


def routes(pool: Connections) -> Sequence[Route]:
    """The calls about dead letters."""
    letters = DeadLetters(pool)
    return [
        Route(
            "GET",
            "/v1/dead-letters",
            letters.list,
            operation(
                summary="List dead letters",
                scope="ops",
                tag="dead letters",
                parameters=DeadLettersParameters,
                response=Page[DeadLetter],
                problems=(Code.INVALID_CURSOR,),
            ),
        ),
        Route(
            "GET",
            "/v1/dead-letters/{id}",
            letters.show,
            operation(
                summary="Show a dead letter",
                description="Of an unknown code: how often it was said, on how many shipments, and in which messages lately.",
                scope="ops",
                tag="dead letters",
                parameters=DeadLetterParameters,
                response=ShownDeadLetter,
                problems=(Code.NOT_FOUND,),
            ),
        ),
    ]
