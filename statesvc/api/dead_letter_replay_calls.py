"""`POST /v1/dead-letters...`: replaying and discarding what waits for a human. Each call is an operator action.

A replay over the API is the same run as the command's, cut into calls: each does what fits into it, and its `next_cursor` goes on.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NoReturn
from uuid import UUID, uuid4

from aiohttp import web

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.dead_letter_calls import DeadLetterParameters
from statesvc.api.dead_letter_replay_models import (
    REPLAY_LIMIT_MAX,
    Discard,
    DiscardedMany,
    DiscardMany,
    ReplayedMany,
    ReplayedOne,
    ReplayMany,
    ReplayOne,
)
from statesvc.database.pool import Connections
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Reply, Route, answer, body, parameters, route
from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.log.archive.folder import ArchivePath
from statesvc.repair.dead_letters.dead_letter import SENTENCES, DeadLetter, DeadLetterFilter, Obstacle, way_of
from statesvc.repair.dead_letters.listing import NEWEST, find_dead_letter
from statesvc.repair.dead_letters.put_back import discard
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits
from statesvc.repair.dead_letters.replay_plan import RepairRequest, ReplayPlanLine, newest_dead_letter, plan_replay
from statesvc.repair.dead_letters.replay_run import STEPS, ReplayBudget, ReplayRun, RunPosition
from statesvc.repair.dead_letters.reread import Rereader

REPLAY_SECONDS: Final = 30.0
BUDGET: Final = ReplayBudget(dead_letters_max=REPLAY_LIMIT_MAX)
PATIENCE_SECONDS: Final = 8.0
_STOPPED: Final = frozenset({ReplayEnd.CANARY_FAILED, ReplayEnd.ERRORS_ROSE})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterReplayCalls:
    """The handlers that act."""

    pool: Connections
    waker: Wakes
    rereader: Rereader

    async def one(self, request: web.Request) -> Reply[ReplayedOne]:
        """Replays one dead letter, or answers what stands in its way."""
        asked = body(request, ReplayOne)
        dead_letter_id = parameters(request, DeadLetterParameters).id
        bound_to = {"replay": dead_letter_id}
        run_id, start = _start(asked.cursor, bound_to)
        wanted = self._request(request, DeadLetterFilter(), asked.why, run_id, ids=(dead_letter_id,))
        async with self.pool.connection() as connection:
            dead_letter = await find_dead_letter(connection, dead_letter_id)
            if dead_letter is None:
                raise Problem(Code.NOT_FOUND, f"no dead letter has the id {dead_letter_id}")
            if dead_letter.resolution is not None:
                _refuse(Obstacle(dead_letter.resolution))
            for obstacle in (await plan_replay(connection, wanted)).obstacles:
                _refuse(obstacle)
        run = self._run(wanted, start or RunPosition(up_to=dead_letter_id), ReplayLimits(), BUDGET)
        progress = await run.replay()
        for obstacle in progress.refused:
            _refuse(obstacle)
        resolved = progress.ended is ReplayEnd.DONE
        if resolved and not progress.replayed:
            # another operator was faster
            _refuse(Obstacle.REPLAYED)
        return answer(
            ReplayedOne(
                dead_letter_id=dead_letter_id,
                run_id=run_id,
                way=way_of(dead_letter.kind, dead_letter.cause),
                resolved=resolved,
                messages=progress.reread,
                corrected=progress.corrected,
                added=progress.added,
                next_cursor=None if resolved else _cursor(run, bound_to),
            )
        )

    async def many(self, request: web.Request) -> Reply[ReplayedMany]:
        """Replays what fits into a call of the dead letters that a filter means, or answers what it would do."""
        asked = body(request, ReplayMany)
        wanted = asked.filter
        bound_to = {"replay": wanted.stated}
        run_id, start = _start(asked.cursor, bound_to)
        order = self._request(request, wanted, asked.why, run_id)
        async with self.pool.connection() as connection:
            plan = await plan_replay(connection, order) if asked.dry_run else None
            if start is None:
                start = RunPosition(up_to=await newest_dead_letter(connection))
        limits = ReplayLimits(canary=asked.canary, stop_at_percent=asked.stop_at_percent)
        run = self._run(order, start, limits, replace(BUDGET, dead_letters_max=asked.limit))
        if plan is not None:
            return answer(_replayed(run, None, plan=list(plan.lines), remaining=plan.dead_letters))
        progress = await run.replay()
        goes_on = progress.ended is not ReplayEnd.DONE and progress.ended not in _STOPPED
        return answer(_replayed(run, _cursor(run, bound_to) if goes_on else None))

    async def discard(self, request: web.Request) -> Reply[DeadLetter]:
        """Gives one dead letter up."""
        dead_letter_id = parameters(request, DeadLetterParameters).id
        order = self._request(request, DeadLetterFilter(), body(request, Discard).why, uuid4(), ids=(dead_letter_id,))
        async with self.pool.connection() as connection:
            discarded = await discard(connection, order, up_to=NEWEST)
            found = await find_dead_letter(connection, dead_letter_id)
        if found is None:
            raise Problem(Code.NOT_FOUND, f"no dead letter has the id {dead_letter_id}")
        if not discarded:
            _refuse(Obstacle(found.resolution) if found.resolution else Obstacle.WAITING)
        return answer(found)

    async def discard_many(self, request: web.Request) -> Reply[DiscardedMany]:
        """Gives up what fits into a call of the dead letters that a filter means, or counts them."""
        asked = body(request, DiscardMany)
        order = self._request(request, asked.filter, asked.why, uuid4())
        async with self.pool.connection() as connection:
            discarded = 0 if asked.dry_run else await discard(connection, order, up_to=NEWEST)
            plan = await plan_replay(connection, order)
        return answer(DiscardedMany(dry_run=asked.dry_run, discarded=discarded, remaining=plan.dead_letters))

    def _request(
        self, request: web.Request, wanted: DeadLetterFilter, why: str, run_id: UUID, *, ids: tuple[int, ...] | None = None
    ) -> RepairRequest:
        carriers = frozenset(self.rereader.carriers)
        return RepairRequest(wanted=wanted, ids=ids, carriers=carriers, actor=caller_of(request).actor, why=why, run_id=run_id)

    def _run(self, request: RepairRequest, start: RunPosition, limits: ReplayLimits, budget: ReplayBudget) -> ReplayRun:
        return ReplayRun(
            connections=self.pool,
            request=request,
            limits=limits,
            rereader=self.rereader,
            wake=self._wake,
            show=lambda _: None,
            position=start,
            budget=budget,
            patience_seconds=PATIENCE_SECONDS,
        )

    async def _wake(self, channels: frozenset[str]) -> None:
        for channel in sorted(channels):
            self.waker.wake(channel)


def _replayed(
    run: ReplayRun, next_cursor: str | None, *, plan: list[ReplayPlanLine] | None = None, remaining: int | None = None
) -> ReplayedMany:
    progress = run.progress
    return ReplayedMany(
        run_id=run.request.run_id,
        dry_run=plan is not None,
        plan=plan,
        replayed=progress.replayed,
        refused=dict(progress.refused),
        settled=progress.settled,
        failed=progress.failed,
        waiting=progress.waiting,
        messages=progress.reread,
        corrected=progress.corrected,
        added=progress.added,
        ended=progress.ended,
        remaining=progress.remaining if remaining is None else remaining,
        next_cursor=next_cursor,
    )


def _refuse(obstacle: Obstacle) -> NoReturn:
    raise Problem(Code.CONFLICT, SENTENCES[obstacle], members={"obstacle": obstacle.value})


def _cursor(run: ReplayRun, bound_to: Mapping[str, Any]) -> str:
    at = run.position
    began = at.code_began.isoformat() if at.code_began is not None else None
    counts = [at.up_to, at.step, at.after, int(at.canary_passed)]
    return encode_cursor([str(run.request.run_id), *counts, str(at.code_after), began, int(at.code_left)], bound_to)


def _start(cursor: str | None, bound_to: Mapping[str, Any]) -> tuple[UUID, RunPosition | None]:
    """The run that a cursor goes on with, and where; without a cursor a new run."""
    if cursor is None:
        return uuid4(), None
    match decode_cursor(cursor, bound_to, fields=8):
        case [
            str() as run_id,
            int() as up_to,
            int() as step,
            int() as after,
            int() as passed,
            str() as code_after,
            str() | None as began,
            int() as left,
        ] if 0 <= after <= up_to <= NEWEST and 0 <= step < len(STEPS):
            try:
                return UUID(run_id), RunPosition(
                    up_to=up_to,
                    step=step,
                    after=after,
                    canary_passed=bool(passed),
                    code_after=UUID(code_after),
                    code_began=datetime.fromisoformat(began) if began is not None else None,
                    code_left=bool(left),
                )
            except ValueError:
                pass
    raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given")


def routes(
    pool: Connections, keyring: Keyring, waker: Wakes, *, carriers: Mapping[str, Carrier], archive: ArchivePath | None
) -> Sequence[Route]:
    """The calls that act on dead letters. `archive`: the folder of older bodies."""
    rereader = Rereader(keyring=keyring, carriers=carriers, writer=f"{socket.gethostname()}-replay", archive=archive)
    calls = DeadLetterReplayCalls(pool=pool, waker=waker, rereader=rereader)
    return [
        route(
            "POST /v1/dead-letters/replay",
            calls.many,
            operation_id="replay_dead_letters",
            summary="Replay the dead letters that a filter means",
            description=(
                "The open ones, oldest first: a canary, and the rest once that went well, as many as fit into a call; go on with "
                "`next_cursor`. Messages and notifications go back into their queues under their old ids, each once. Rejected members "
                "and events with a code are read again. What is buried again meanwhile is left alone."
            ),
            scope="ops",
            tag="dead letters",
            request=ReplayMany,
            response=ReplayedMany,
            problems=(Code.INVALID_CURSOR,),
            deadline_seconds=REPLAY_SECONDS,
        ),
        route(
            "POST /v1/dead-letters/discard",
            calls.discard_many,
            operation_id="discard_dead_letters",
            summary="Discard the dead letters that a filter means",
            description="The open ones, oldest first, at most 1,000 in a call. They stay, listed as discarded.",
            scope="ops",
            tag="dead letters",
            request=DiscardMany,
            response=DiscardedMany,
        ),
        route(
            "POST /v1/dead-letters/{id}/replay",
            calls.one,
            operation_id="replay_dead_letter",
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
        route(
            "POST /v1/dead-letters/{id}/discard",
            calls.discard,
            operation_id="discard_dead_letter",
            summary="Discard a dead letter",
            description="It stays, listed as discarded. An unknown code that is pushed again makes a new dead letter.",
            scope="ops",
            tag="dead letters",
            parameters=DeadLetterParameters,
            request=Discard,
            response=DeadLetter,
            problems=(Code.NOT_FOUND, Code.CONFLICT),
        ),
    ]
