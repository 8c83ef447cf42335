"""`/v1/rollouts...`: rollouts of carriers and kill switches.

`/diffs`: a candidate's differences.
"""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.api import kit
from statesvc.api import rollout_words as words
from statesvc.api.operating_words import would_hold, would_release
from statesvc.api.rollout_models import (
    DiffsPage,
    DiffsParameters,
    RolloutChange,
    RolloutParameters,
    ShownReading,
    ShownRollout,
)
from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.http.unknown_carrier import no_such_carrier
from statesvc.reading.foreign_readings import ReadingState, list_readings
from statesvc.reading.rollout_store import (
    ALL,
    DifferingEventsError,
    LaggingWorkers,
    RolloutSettings,
    RolloutState,
    lagging_workers,
    refusals,
    rollout_of,
    set_hold,
    set_rollout,
)
from statesvc.reading.rollout_store import list_rollouts as stored_rollouts
from statesvc.reading.trials import list_differences, totals_of

_TAG: Final = "rollouts"
_HELD: Final = kit.Sentences("{carrier_id}: held; in effect at the next claim")
_RELEASED: Final = kit.Sentences("{carrier_id}: released; in effect at the next claim")
_ONE: Final = "/v1/rollouts/{carrier_id}"
_PAGE: Final = "/console/carriers/{carrier_id}"
_FIELDS: Final = (
    "stable",
    "candidate",
    "percent",
    "shadow",
    "guard.messages",
    "guard.errors_percent",
    "guard.differences_percent",
)
_SHOWN: Final = (
    kit.Column(words.carrier, "Carrier", link=_PAGE),
    "hold",
    "stable",
    "candidate",
    "percent",
    "shadow",
    kit.Column(words.guard, "Guard"),
    kit.Column("changed_at", "Changed"),
    kit.Column("changed_by", "By"),
    "why",
)
_TRIAL: Final = (
    kit.Sentences(words.tried),
    kit.Table(
        kit.Column("recorded_at", "When"),
        kit.Column("message_id", "Message", wide=True),
        kit.Column("event_id", "Event"),
        "field",
        kit.Column("stable_value", "Stable"),
        kit.Column("candidate_value", "Candidate"),
    ),
)


@kit.operation(
    "GET /v1/rollouts",
    scope="ops",
    tag=_TAG,
    view=kit.Table(
        *_SHOWN, empty="No rollout was ever set: each carrier is read by its stable version."
    ),
    commands=(
        kit.Command(
            name="rollout show",
            summary=("list all rollouts; for a carrier, the differences of its candidate"),
            renamed={"carrier_id": "carrier"},
        ),
    ),
)
async def list_rollouts(
    context: kit.Context, _call: kit.Call[None, None]
) -> kit.Page[ShownRollout]:
    """List rollouts.

    Every rollout that was ever set, that of all carriers first.
    """
    async with context.pool.connection() as connection:
        turned = await stored_rollouts(connection)
        lacking, readings = await lagging_workers(connection), await list_readings(connection)
    all_held = any(rollout.hold for rollout in turned if rollout.carrier_id == ALL)
    states = [RolloutState(rollout, held=rollout.hold or all_held) for rollout in turned]
    return kit.Page([_shown(state, lacking, readings) for state in states], None)


@kit.operation(
    f"GET {_ONE}",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=(
        kit.Details(*_SHOWN, kit.Column(words.fallback, "Fallback")),
        kit.Table(
            kit.Column(words.reader, "Reading"),
            "role",
            kit.Column(words.share, "Share"),
            kit.Column(words.asked, "Asked"),
            "waiting",
            "leased",
            kit.Column("fallbacks", "Left to others"),
            of="readings",
        ),
        kit.Sentences(words.warnings),
    ),
    commands=(
        kit.Command(
            name="rollout show",
            summary=("list all rollouts; for a carrier, the differences of its candidate"),
            renamed={"carrier_id": "carrier"},
            also=(kit.Also("list_rollout_diffs", "differences", given=("candidate",)),),
        ),
    ),
)
async def get_rollout(
    context: kit.Context, call: kit.Call[RolloutParameters, None]
) -> ShownRollout:
    """Show a carrier's rollout."""
    carrier_id = _carrier_id(context, call.parameters.carrier_id)
    async with context.pool.connection() as connection:
        return await _read(connection, carrier_id)


@kit.operation(
    f"PUT {_ONE}",
    scope="ops",
    tag=_TAG,
    rules=(
        (
            "The candidate is a registered version of this carrier or another fleet's name@version,"
            " and not the stable reading."
        ),
        "Shares and guards take a candidate.",
        "A share is not raised while the shadow shows differing event ids, unless forced.",
    ),
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=kit.Sentences(words.turned),
    commands=(
        kit.Command(
            name="rollout set",
            summary="give a candidate version, or another fleet, a share of a carrier's messages",
            fields=(*_FIELDS, "fallback_seconds", "force", "why"),
            required=("percent",),
            defaults={"shadow": False, "guard": None},
        ),
        kit.Command(
            name="rollout hold",
            summary="stop processing a carrier's messages; they are kept",
            fields=("why",),
            fixed={"hold": True},
            view=_HELD,
        ),
        kit.Command(
            name="rollout release",
            summary="resume processing a carrier's messages",
            fields=("why",),
            fixed={"hold": False},
            view=_RELEASED,
        ),
    ),
    forms=(
        kit.Form(
            path=_PAGE + "/rollout",
            title="Change the rollout of {carrier_id}",
            button="Turn it",
            fields=_FIELDS,
            preview="get_rollout",
            is_filled=True,
            then=_PAGE,
            section="/console/carriers",
        ),
        kit.Form(
            path="/console/carriers/{carrier_id}/hold",
            title="Hold {carrier_id}",
            button="Hold it",
            fixed={"hold": True},
            preview="get_queue",
            would=kit.Sentences(would_hold),
            view=_HELD,
            then="/console/carriers/{carrier_id}",
            section="/console/carriers",
            is_drastic=True,
        ),
        kit.Form(
            path="/console/carriers/{carrier_id}/release",
            title="Release {carrier_id}",
            button="Release it",
            fixed={"hold": False},
            preview="get_queue",
            would=kit.Sentences(would_release),
            view=_RELEASED,
            then="/console/carriers/{carrier_id}",
            section="/console/carriers",
        ),
    ),
)
async def change_rollout(
    context: kit.Context, call: kit.Call[RolloutParameters, RolloutChange]
) -> ShownRollout:
    """Change a carrier's rollout.

    In effect at the next claim of every worker. The candidate reads a share of the messages,
    the same messages each time; on hold, messages are acknowledged and stored, but not
    processed. Recorded as an operator action.
    """
    carrier_id, change, actor = (
        _carrier_id(context, call.parameters.carrier_id),
        call.body,
        call.caller.actor,
    )
    async with context.pool.connection() as connection, connection.transaction():
        wanted = change.applied_to((await rollout_of(connection, carrier_id)).rollout)
        if wanted is not None:
            _require_possible(context, carrier_id, wanted)
        if change.dry_run:
            return await _read(connection, carrier_id)
        if wanted is not None:
            try:
                await set_rollout(
                    connection, carrier_id, wanted, why=change.why, actor=actor, force=change.force
                )
            except DifferingEventsError as error:
                violations = [kit.Violation("/body/percent", str(error))]
                raise kit.Problem(
                    kit.Code.INVALID_REQUEST,
                    "other event ids were seen; nothing was changed",
                    violations=violations,
                ) from None
        if change.hold is not None:
            await set_hold(
                connection, carrier_id=carrier_id, hold=change.hold, why=change.why, actor=actor
            )
        shown = await _read(connection, carrier_id)
    if change.hold is not True:
        for channel in READY_NOW:
            context.waker.wake(channel)
    return shown


@kit.operation(
    f"GET {_ONE}/diffs",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.INVALID_CURSOR),
    view=_TRIAL,
)
async def list_rollout_diffs(
    context: kit.Context, call: kit.Call[DiffsParameters, None]
) -> DiffsPage:
    """Show the differences of a candidate.

    Found by the shadow, field by field, the newest first. Values that may name a person are
    keyed digests.
    """
    wanted = call.parameters
    carrier_id = _carrier_id(context, wanted.carrier_id)
    bound_to = {"carrier_id": carrier_id, "candidate": wanted.candidate}
    before = kit.before_number(wanted.cursor, bound_to)
    async with context.pool.connection() as connection:
        items, more = await list_differences(
            connection, carrier_id, candidate=wanted.candidate, before=before, limit=wanted.limit
        )
        candidate = wanted.candidate or (await rollout_of(connection, carrier_id)).rollout.candidate
        totals = await totals_of(connection, carrier_id, candidate)
    return {
        "items": items,
        "next_cursor": None if more is None else kit.encode_cursor([more], bound_to),
        "totals": {
            "candidate": candidate,
            "messages": totals.messages,
            "errors": totals.errors,
            "differing": totals.differing,
            "fields": totals.fields,
            "dropped": totals.dropped,
        },
    }


def _require_possible(context: kit.Context, carrier_id: str, wanted: RolloutSettings) -> None:
    violations = [
        kit.Violation(f"/body/{refused.member}", refused.why)
        for refused in refusals(wanted, context.carriers().get(carrier_id))
    ]
    if violations:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST,
            "no candidate version can be rolled out like this; nothing was changed",
            violations=violations,
        )


def _carrier_id(context: kit.Context, carrier_id: str) -> str:
    if carrier_id in {"all", ALL}:
        return ALL
    if carrier_id not in context.carriers():
        raise kit.Problem(
            kit.Code.UNKNOWN_CARRIER,
            f"{no_such_carrier(carrier_id, context.carriers())}, `all` means every one",
        )
    return carrier_id


async def _read(connection: AsyncConnection[Any], carrier_id: str) -> ShownRollout:
    readings = await list_readings(connection, carrier_id)
    return _shown(
        await rollout_of(connection, carrier_id), await lagging_workers(connection), readings
    )


def _shown(
    state: RolloutState, lacking: Sequence[LaggingWorkers], readings: Sequence[ReadingState]
) -> ShownRollout:
    rollout = state.rollout
    its = [reading for reading in readings if reading.carrier_id == rollout.carrier_id]
    unasked = [
        f"no worker asked for {reading.reading} within the last minute: is it misspelt?"
        for reading in its
        if reading.has_no_reader
    ]
    return {
        "carrier_id": rollout.carrier_id,
        "stable": rollout.stable,
        "candidate": rollout.candidate,
        "percent": rollout.percent,
        "shadow": rollout.shadow,
        "hold": rollout.hold,
        "held": state.held,
        "changed_at": rollout.changed_at,
        "changed_by": rollout.changed_by,
        "why": rollout.why,
        "turned_at": rollout.turned_at,
        "guard": rollout.guard,
        "fallback_seconds": rollout.fallback_seconds,
        "readings": [_shown_reading(reading) for reading in its],
        "warnings": [
            *(each.sentence for each in lacking if each.carrier_id == rollout.carrier_id),
            *unasked,
        ],
    }


def _shown_reading(reading: ReadingState) -> ShownReading:
    return {
        "reading": reading.reading,
        "role": "candidate" if reading.is_candidate else "stable",
        "share": reading.share,
        "asked_seconds_ago": reading.asked_seconds,
        "waiting": reading.waiting,
        "oldest_seconds": reading.oldest_seconds,
        "leased": reading.leased,
        "fallbacks": reading.fallbacks,
    }


OPERATIONS: Final = (list_rollouts, get_rollout, change_rollout, list_rollout_diffs)
