"""`GET /v1/dead-letters...`: what waits for a human."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aiohttp import web

from statesvc.api.dead_letter_models import (
    DeadLetter,
    DeadLetterParameters,
    DeadLettersParameters,
    Groups,
    GroupsParameters,
    ShownDeadLetter,
)
from statesvc.database.pool import Connections
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.paging import Page, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.http.response import answer
from statesvc.repair.dead_letters.dead_letter import Filter, way_of
from statesvc.repair.dead_letters.groups import group_dead_letters
from statesvc.repair.dead_letters.listing import NEWEST, list_dead_letters, show_dead_letter
from statesvc.repair.dead_letters.lives import history_of


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The handlers."""

    pool: Connections

    async def list(self, request: web.Request) -> web.StreamResponse:
        """A page, newest first."""
        asked = parameters(request, DeadLettersParameters)
        wanted = Filter(
            kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, since=asked.since, until=asked.until, is_open=asked.open
        )
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

    async def groups(self, request: web.Request) -> web.StreamResponse:
        """The open ones by what went wrong."""
        asked = parameters(request, GroupsParameters)
        wanted = Filter(kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, since=asked.since, until=asked.until)
        async with self.pool.connection() as connection:
            groups, capped = await group_dead_letters(connection, wanted)
        items = [{**asdict(group), "way": way_of(group.kind, group.cause)} for group in groups]
        return answer({"items": items, "counts_capped": capped})

    async def show(self, request: web.Request) -> web.StreamResponse:
        """One dead letter, with all that is known about it."""
        asked = parameters(request, DeadLetterParameters)
        async with self.pool.connection() as connection:
            shown = await show_dead_letter(connection, asked.id)
            if shown is None:
                raise Problem(Code.NOT_FOUND, f"no dead letter has the id {asked.id}")
            letter, statements = shown
            history = asdict(await history_of(connection, letter))
        known = {"way": letter.way, "statements": statements, "attempts_made": history.pop("attempts")}
        return answer({**asdict(letter), **history, **known})


def routes(pool: Connections) -> Sequence[Route]:
    """The calls that read dead letters."""
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
            "/v1/dead-letters/groups",
            letters.groups,
            operation(
                summary="Group dead letters by cause",
                description="The open ones, by kind, cause and carrier, with the details that occur most.",
                scope="ops",
                tag="dead letters",
                parameters=GroupsParameters,
                response=Groups,
            ),
        ),
        Route(
            "GET",
            "/v1/dead-letters/{id}",
            letters.show,
            operation(
                summary="Show a dead letter",
                description=(
                    "With each attempt, the letters of its earlier and later lives, and what a replay of it means or what stands in its "
                    "way. Of an unknown code: how often it was said, on how many shipments, and in which messages lately."
                ),
                scope="ops",
                tag="dead letters",
                parameters=DeadLetterParameters,
                response=ShownDeadLetter,
                problems=(Code.NOT_FOUND,),
            ),
        ),
    ]
