"""`POST /v1/dead-letters...`: replaying and discarding what waits for a human. Each call is an operator action."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID, uuid4

from aiohttp import web

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.dead_letter_models import (
    DeadLetter,
    DeadLetterParameters,
    Discard,
    ReplayedMany,
    ReplayedOne,
    ReplayMany,
    ReplayOne,
)
from statesvc.api.rollout_calls import Wakes
from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Route, body, operation, parameters
from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.http.response import answer
from statesvc.repair.dead_letters.bounded_replay import Done, replay_one, replay_page
from statesvc.repair.dead_letters.dead_letter import Filter, Way
from statesvc.repair.dead_letters.discard import discard
from statesvc.repair.dead_letters.listing import NEWEST, show_dead_letter
from statesvc.repair.dead_letters.obstacle import SENTENCES, Obstacle
from statesvc.repair.dead_letters.put_back import Order, horizon, next_letters, plan
from statesvc.repair.dead_letters.replay_plan import Line
from statesvc.repair.dead_letters.rereader import Rereader
from statesvc.repair.renormalize.late_code import FIRST

REPLAY_SECONDS = 30.0
_CODE_LETTERS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """The handlers."""

    pool: Connections
    waker: Wakes
    rereader: Rereader

    async def one(self, request: web.Request) -> web.StreamResponse:
        """Replays one letter, or says what stands in its way."""
        asked = body(request, ReplayOne)
        letter_id = parameters(request, DeadLetterParameters).id
        bound_to = {"replay": letter_id}
        after, left = FIRST, False
        if asked.cursor is not None:
            after, left = _reading(decode_cursor(asked.cursor, bound_to, fields=2))
        order = self._order(request, Filter(), asked.why, ids=(letter_id,))
        async with self.pool.connection() as connection:
            shown = await show_dead_letter(connection, letter_id)
            if shown is None:
                raise Problem(Code.NOT_FOUND, f"no dead letter has the id {letter_id}")
            letter = shown[0]
            done = await replay_one(connection, order, self.rereader, letter, after=after, left=left)
        self._wake(done)
        if done.obstacles:
            _refuse(next(iter(done.obstacles)))
        return answer(
            {
                "dead_letter_id": letter_id,
                "run_id": order.run_id,
                "way": letter.way,
                "resolved": done.reading is None,
                "messages": done.result.messages,
                "corrected": done.result.corrected,
                "added": done.result.added,
                "next_cursor": None if done.reading is None else encode_cursor([str(done.reading), int(done.left)], bound_to),
            }
        )

    async def many(self, request: web.Request) -> web.StreamResponse:
        """Replays a page of the letters that a filter means, or says what it would do."""
        asked = body(request, ReplayMany)
        wanted = Filter(kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, since=asked.since, until=asked.until)
        order = self._order(request, wanted, asked.why)
        bound_to = {"replay": wanted.stated}
        shown: dict[str, Any] = {"run_id": order.run_id, "dry_run": asked.dry_run, "plan": None, "replayed": 0, "refused": {}}
        async with self.pool.connection() as connection:
            if asked.dry_run:
                lines = (await plan(connection, order)).lines
                return answer({**shown, "plan": [_line(line) for line in lines], "code_letters": [], "next_cursor": None})
            after, up_to = 0, 0
            if asked.cursor is not None:
                after, up_to = _place(decode_cursor(asked.cursor, bound_to, fields=2))
            up_to = up_to or await horizon(connection)
            done, following = await replay_page(connection, order, self.rereader, after=after, up_to=up_to, limit=asked.limit)
            codes = (
                [] if following else await next_letters(connection, order, [Way.READ_CODE], after=0, up_to=up_to, limit=_CODE_LETTERS_MAX)
            )
        self._wake(done)
        shown |= {"replayed": done.replayed, "refused": _words(done.obstacles), "code_letters": [letter.dead_letter_id for letter in codes]}
        return answer({**shown, "next_cursor": None if following is None else encode_cursor([following, up_to], bound_to)})

    async def discard(self, request: web.Request) -> web.StreamResponse:
        """Gives one letter up."""
        letter_id = parameters(request, DeadLetterParameters).id
        order = self._order(request, Filter(), body(request, Discard).why, ids=(letter_id,))
        async with self.pool.connection() as connection:
            discarded = await discard(connection, order, up_to=NEWEST)
            shown = await show_dead_letter(connection, letter_id)
        if shown is None:
            raise Problem(Code.NOT_FOUND, f"no dead letter has the id {letter_id}")
        if not discarded:
            resolution = shown[0].resolution
            _refuse(Obstacle(resolution) if resolution else Obstacle.WAITING)
        return answer(shown[0])

    def _order(self, request: web.Request, wanted: Filter, why: str, *, ids: tuple[int, ...] | None = None) -> Order:
        carriers = frozenset(self.rereader.carriers)
        return Order(wanted=wanted, ids=ids, carriers=carriers, actor=caller_of(request).actor, why=why, run_id=uuid4())

    def _wake(self, done: Done) -> None:
        for channel in sorted(done.channels):
            self.waker.wake(channel)


def _refuse(obstacle: Obstacle) -> NoReturn:
    raise Problem(Code.CONFLICT, SENTENCES[obstacle], members={"obstacle": obstacle.value})


def _reading(position: Sequence[Any]) -> tuple[UUID, bool]:
    match position:
        case [str() as after, int() as left]:
            try:
                return UUID(after), bool(left)
            except ValueError:
                pass
    raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given")


def _place(position: Sequence[Any]) -> tuple[int, int]:
    match position:
        case [int() as after, int() as up_to] if 0 <= after <= up_to <= NEWEST:
            return after, up_to
        case _:
            raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given")


def _line(line: Line) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "cause": line.cause,
        "carrier_id": line.carrier_id,
        "way": line.way,
        "letters": line.letters,
        "replayable": line.replayable,
        "obstacles": _words(line.obstacles),
    }


def _words(obstacles: Mapping[Obstacle, int]) -> dict[str, int]:
    return {obstacle.value: count for obstacle, count in obstacles.items()}


def routes(pool: Connections, keyring: Keyring, waker: Wakes, *, carriers: Mapping[str, Carrier], archive: Path | None) -> Sequence[Route]:
    """The calls that act on dead letters. `archive`: the folder of older bodies."""
    rereader = Rereader(keyring=keyring, carriers=carriers, writer=f"{socket.gethostname()}-replay", archive=archive)
    replays = Replays(pool=pool, waker=waker, rereader=rereader)
    return [
        Route(
            "POST",
            "/v1/dead-letters/replay",
            replays.many,
            operation(
                summary="Replay the dead letters that a filter means",
                description=(
                    "The open ones, oldest first, at most `limit`; go on with `next_cursor`. Messages and notifications go back into their "
                    "queues under their old ids, once whoever else does it too. Letters that are buried again meanwhile are left alone."
                ),
                scope="ops",
                tag="dead letters",
                request=ReplayMany,
                response=ReplayedMany,
                problems=(Code.INVALID_CURSOR,),
                deadline_seconds=REPLAY_SECONDS,
            ),
        ),
        Route(
            "POST",
            "/v1/dead-letters/{id}/replay",
            replays.one,
            operation(
                summary="Replay a dead letter",
                description=(
                    "A message goes back into the inbox, a notification into the outbox. A message with rejected members, and all events "
                    "with a code, are read again. 409 with `obstacle` where that cannot be done."
                ),
                scope="ops",
                tag="dead letters",
                parameters=DeadLetterParameters,
                request=ReplayOne,
                response=ReplayedOne,
                problems=(Code.NOT_FOUND, Code.CONFLICT, Code.INVALID_CURSOR),
                deadline_seconds=REPLAY_SECONDS,
            ),
        ),
        Route(
            "POST",
            "/v1/dead-letters/{id}/discard",
            replays.discard,
            operation(
                summary="Discard a dead letter",
                description="It is kept and listed as discarded. An unknown code that is pushed again makes a new letter.",
                scope="ops",
                tag="dead letters",
                parameters=DeadLetterParameters,
                request=Discard,
                response=DeadLetter,
                problems=(Code.NOT_FOUND, Code.CONFLICT),
            ),
        ),
    ]
