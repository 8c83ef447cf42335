"""`POST /v1/dead-letters...`: dead letters replayed, or discarded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from uuid import UUID, uuid4

from psycopg import AsyncConnection

from statesvc.api import dead_letter_words as words
from statesvc.api import kit
from statesvc.api.dead_letter_operations import LIST, DeadLetterParameters, absent
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
from statesvc.repair.dead_letters.dead_letter import (
    SENTENCES,
    DeadLetter,
    DeadLetterFilter,
    Obstacle,
    way_of,
)
from statesvc.repair.dead_letters.listing import find_dead_letter
from statesvc.repair.dead_letters.put_back import discard
from statesvc.repair.dead_letters.replay_plan import RepairRequest, plan_replay
from statesvc.repair.dead_letters.replay_run import (
    ReplayBudget,
    ReplayEnd,
    ReplayRun,
    RunPosition,
    RunProgress,
)

REPLAY_SECONDS: Final = 30.0


_TAG: Final = "dead letters"


_FILTER: Final = ("kind", "carrier_id", "cause")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCursor:
    """A run and the position to go on from."""

    run_id: UUID
    at: RunPosition


@kit.operation(
    "POST /v1/dead-letters/replay",
    scope="ops",
    tag=_TAG,
    problems=(
        kit.Code.INVALID_CURSOR,
        kit.Code.UNKNOWN_CARRIER,
        kit.Code.NOT_FOUND,
        kit.Code.CONFLICT,
    ),
    deadline_seconds=REPLAY_SECONDS,
    parts=kit.CallParts(
        summed=("replayed", "messages", "corrected", "added", "refused"), left="remaining"
    ),
    view=(
        kit.Table(
            "dead_letters",
            "carrier_id",
            "kind",
            "cause",
            kit.Column(words.way_words, "A replay"),
            kit.Column("replayable", "Can"),
            kit.Column(words.obstacle_words, "Cannot"),
            of="plan",
        ),
        kit.Sentences(words.replayed_many),
    ),
    commands=(kit.Command(name="dead-letters replay", arguments=("ids",)),),
    forms=(
        kit.Form(
            path=LIST + "/replay",
            title="Replay dead letters",
            button="Replay them",
            fields=(*_FILTER, "limit"),
            then=LIST,
        ),
    ),
)
async def replay_dead_letters(
    context: kit.Context, call: kit.Call[None, ReplayMany]
) -> ReplayedMany:
    """Replay dead letters.

    The open ones that match a filter, oldest first, as many as fit into a call; go on with
    `next_cursor`. Messages and notifications go back into their queues under their old ids,
    each once. Rejected members and events with a code are read again. Dead letters that are
    buried again meanwhile are left alone. `limit` replays a few, to see whether the cause is
    mended.
    """
    wanted = call.body
    bound_to = {"replay": wanted.filter.stated, **({"ids": wanted.ids} if wanted.ids else {})}
    start = _start(wanted.cursor, bound_to)
    request = _request(
        context, call, wanted.filter, why=wanted.why, run_id=start.run_id, ids=wanted.ids
    )
    plan = None
    async with context.pool.connection() as connection:
        if wanted.dry_run or wanted.cursor is None:
            await _require_open(connection, wanted.ids or ())
            plan = await plan_replay(connection, request)
    # only where nothing was found: a carrier that is gone may still have dead letters
    if plan is not None and not plan.dead_letters:
        context.refuse_unknown(wanted.carrier_id)
    at = start.at if plan is None else RunPosition(up_to=plan.up_to)
    run = await _run(context, request, at, wanted.limit or REPLAY_LIMIT_MAX)
    progress = RunProgress() if wanted.dry_run else await run.replay(plan)
    if plan is not None and (unreadable := plan.obstacles[Obstacle.UNKNOWN_CARRIER]):
        # the run leaves them out, so its own counts lack them
        progress.refused[Obstacle.UNKNOWN_CARRIER] = unreadable
    is_over = wanted.dry_run or progress.ended is ReplayEnd.DONE
    return ReplayedMany(
        run_id=request.run_id,
        dry_run=wanted.dry_run,
        plan=list(plan.lines) if plan is not None and wanted.dry_run else None,
        replayed=progress.replayed,
        refused=dict(progress.refused),
        settled=0,
        failed=0,
        waiting=progress.put_back,
        messages=progress.reread,
        corrected=progress.corrected,
        added=progress.added,
        ended=progress.ended,
        remaining=plan.dead_letters if plan is not None and wanted.dry_run else progress.remaining,
        next_cursor=None if is_over else _cursor(run, bound_to),
    )


@kit.operation(
    "POST /v1/dead-letters/discard",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.NOT_FOUND, kit.Code.CONFLICT),
    parts=kit.CallParts(summed=("discarded",), left="remaining", repeats=True),
    view=kit.Sentences(words.discarded_many),
    commands=(kit.Command(name="dead-letters discard", arguments=("ids",)),),
    forms=(
        kit.Form(
            path=LIST + "/discard",
            title="Discard dead letters",
            button="Discard all of them",
            fields=_FILTER,
            then=LIST,
            is_drastic=True,
        ),
    ),
)
async def discard_dead_letters(
    context: kit.Context, call: kit.Call[None, DiscardMany]
) -> DiscardedMany:
    """Discard the dead letters that match a filter.

    The open ones, oldest first, at most 1,000 in a call. They stay, listed as discarded.
    """
    wanted = call.body
    request = _request(context, call, wanted.filter, why=wanted.why, ids=wanted.ids)
    async with context.pool.connection() as connection:
        await _require_open(connection, wanted.ids or ())
        discarded = 0 if wanted.dry_run else await discard(connection, request, up_to=kit.NEWEST)
        plan = await plan_replay(connection, request)
    if not discarded and not plan.dead_letters:
        context.refuse_unknown(wanted.carrier_id)
    return DiscardedMany(dry_run=wanted.dry_run, discarded=discarded, remaining=plan.dead_letters)


@kit.operation(
    "POST /v1/dead-letters/{id}/replay",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT, kit.Code.INVALID_CURSOR),
    deadline_seconds=REPLAY_SECONDS,
    parts=kit.CallParts(summed=("messages", "corrected", "added")),
    view=kit.Sentences(words.replayed_one),
    forms=(
        kit.Form(
            path=LIST + "/{id}/replay",
            title="Replay dead letter {id}",
            button="Replay",
            preview="get_dead_letter",
            would=kit.Sentences(words.would_replay),
            then=LIST + "/{id}",
            section=LIST,
        ),
    ),
)
async def replay_dead_letter(
    context: kit.Context, call: kit.Call[DeadLetterParameters, ReplayOne]
) -> ReplayedOne:
    """Replay a dead letter.

    A message goes back into the inbox, a notification into the outbox. A message with rejected
    members, and all events with a code, are read again. 409 with `obstacle` if that is
    impossible.
    """
    dead_letter_id = call.parameters.id
    bound_to = {"replay": dead_letter_id}
    start = _start(call.body.cursor, bound_to)
    request = _request(
        context,
        call,
        DeadLetterFilter(),
        why=call.body.why,
        run_id=start.run_id,
        ids=(dead_letter_id,),
    )
    async with context.pool.connection() as connection:
        dead_letter = await find_dead_letter(connection, dead_letter_id)
        if dead_letter is None:
            raise absent(dead_letter_id)
        if dead_letter.resolution is not None:
            _refuse(Obstacle(dead_letter.resolution))
        for obstacle in (await plan_replay(connection, request)).obstacles:
            _refuse(obstacle)
    at = start.at if call.body.cursor is not None else RunPosition(up_to=dead_letter_id)
    run = await _run(context, request, at, REPLAY_LIMIT_MAX)
    progress = await run.replay()
    for obstacle in progress.refused:
        _refuse(obstacle)
    resolved = progress.ended is ReplayEnd.DONE
    if resolved and not progress.replayed:
        # another operator was faster
        _refuse(Obstacle.REPLAYED)
    return ReplayedOne(
        dead_letter_id=dead_letter_id,
        run_id=request.run_id,
        way=way_of(dead_letter.kind, dead_letter.cause),
        resolved=resolved,
        messages=progress.reread,
        corrected=progress.corrected,
        added=progress.added,
        next_cursor=None if resolved else _cursor(run, bound_to),
    )


@kit.operation(
    "POST /v1/dead-letters/{id}/discard",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT),
    view=kit.Sentences("Dead letter {dead_letter_id} is discarded."),
    forms=(
        kit.Form(
            path=LIST + "/{id}/discard",
            title="Discard dead letter {id}",
            button="Discard",
            preview="get_dead_letter",
            would=kit.Sentences(words.would_discard),
            then=LIST + "/{id}",
            section=LIST,
            is_drastic=True,
        ),
    ),
)
async def discard_dead_letter(
    context: kit.Context, call: kit.Call[DeadLetterParameters, Discard]
) -> DeadLetter:
    """Discard a dead letter.

    It stays, listed as discarded. An unknown code that is pushed again makes a new dead letter.
    """
    dead_letter_id = call.parameters.id
    request = _request(context, call, DeadLetterFilter(), why=call.body.why, ids=(dead_letter_id,))
    async with context.pool.connection() as connection:
        discarded = await discard(connection, request, up_to=kit.NEWEST)
        dead_letter = await find_dead_letter(connection, dead_letter_id)
    if dead_letter is None:
        raise absent(dead_letter_id)
    if not discarded:
        _refuse(Obstacle(dead_letter.resolution) if dead_letter.resolution else Obstacle.WAITING)
    return dead_letter


def _request(
    context: kit.Context,
    call: kit.Call[Any, Any],
    wanted: DeadLetterFilter,
    *,
    why: str,
    run_id: UUID | None = None,
    ids: Iterable[int] | None = None,
) -> RepairRequest:
    carriers = frozenset(context.carriers())
    return RepairRequest(
        wanted=wanted,
        ids=None if ids is None else tuple(ids),
        carriers=carriers,
        actor=call.caller.actor,
        why=why,
        run_id=run_id or uuid4(),
    )


async def _require_open(connection: AsyncConnection[Any], ids: Iterable[int]) -> None:
    """Refuse ids that are not of open dead letters. Raises Problem."""
    for dead_letter_id in ids:
        dead_letter = await find_dead_letter(connection, dead_letter_id)
        if dead_letter is None:
            raise absent(dead_letter_id)
        if dead_letter.resolution is not None:
            _refuse(Obstacle(dead_letter.resolution), dead_letter_id)


async def _run(
    context: kit.Context, request: RepairRequest, at: RunPosition, dead_letters_max: int
) -> ReplayRun:
    return ReplayRun(
        connections=context.pool,
        request=request,
        rereader=await context.rereader("replay"),
        wake=context.wake,
        position=at,
        budget=ReplayBudget(
            dead_letters_max=dead_letters_max, messages_max=context.limits.reread_messages
        ),
    )


def _start(cursor: str | None, bound_to: Mapping[str, Any]) -> RunCursor:
    """Return where the run goes on; without a cursor begin a new run."""
    return (
        RunCursor(run_id=uuid4(), at=RunPosition(up_to=0))
        if cursor is None
        else kit.position_of(cursor, RunCursor, bound_to)
    )


def _cursor(run: ReplayRun, bound_to: Mapping[str, Any]) -> str:
    return kit.encode_position(RunCursor(run_id=run.request.run_id, at=run.position), bound_to)


def _refuse(obstacle: Obstacle, dead_letter_id: int | None = None) -> NoReturn:
    about = "" if dead_letter_id is None else f"dead letter {dead_letter_id}: "
    raise kit.Problem(
        kit.Code.CONFLICT, about + SENTENCES[obstacle], members={"obstacle": obstacle.value}
    )


OPERATIONS: Final = (
    replay_dead_letters,
    discard_dead_letters,
    replay_dead_letter,
    discard_dead_letter,
)
