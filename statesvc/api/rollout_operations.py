"""`/v1/rollouts...`: rollouts of carriers and kill switches.

`/diffs`: a candidate's differences.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from psycopg import AsyncConnection
from pydantic import AwareDatetime, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from statesvc.api import rollout_words as words
from statesvc.api.operating_words import would_hold, would_release
from statesvc.api.operation_context import Context
from statesvc.api.parameters import Name
from statesvc.database.wakeups.channels import READY_NOW
from statesvc.http.call import Call
from statesvc.http.closed_model import ClosedModel
from statesvc.http.faces import Also, Asked, Command, Form
from statesvc.http.operation import PartialChange, operation
from statesvc.http.paging import Page, PageParameters, before_number, encode_cursor
from statesvc.http.problem import Code, Problem, Violation
from statesvc.http.unknown_carrier import no_such_carrier
from statesvc.http.views import Column, Details, Sentences, Table
from statesvc.reading.foreign_readings import COUNT_MAX, ReadingState, list_readings
from statesvc.reading.rollout_store import (
    ALL,
    FALLBACK_SECONDS,
    FALLBACK_SECONDS_MAX,
    PERCENT_MAX,
    DifferingEventsError,
    Guard,
    Lacking,
    Rollout,
    RolloutSettings,
    RolloutState,
    lacking_workers,
    refusals,
    rollout_of,
    set_hold,
    set_rollout,
)
from statesvc.reading.rollout_store import list_rollouts as stored_rollouts
from statesvc.reading.trials import StoredDifference, list_differences, totals_of

WHY_LENGTH_MAX = 1000
GUARD_MESSAGES_MAX: Final = 5_000
_DIAL: Final = frozenset({"stable", "candidate", "percent", "shadow", "guard", "fallback_seconds"})
_TAG: Final = "rollouts"
_HELD: Final = Sentences("{carrier_id}: held; in effect at the next claim")
_RELEASED: Final = Sentences("{carrier_id}: released; in effect at the next claim")
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
    Column(words.carrier, "Carrier", link=_PAGE),
    "hold",
    "stable",
    "candidate",
    "percent",
    "shadow",
    Column(words.guard, "Guard"),
    Column("changed_at", "Changed"),
    Column("changed_by", "By"),
    "why",
)
_TRIAL: Final = (
    Sentences(words.tried),
    Table(
        Column("recorded_at", "When"),
        Column("message_id", "Message", wide=True),
        Column("event_id", "Event"),
        "field",
        Column("stable_value", "Stable"),
        Column("candidate_value", "Candidate"),
    ),
)


class RolloutParameters(ClosedModel):
    """A carrier."""

    carrier_id: Annotated[Name, Field(description="A carrier_id; `all` or `*` for all carriers.")]


class GuardBounds(ClosedModel):
    """Bounds at which the rollout falls back to 0 by itself."""

    messages: Annotated[
        int,
        Field(
            ge=1, le=GUARD_MESSAGES_MAX, description="How many of the last messages are counted."
        ),
        Asked(
            label="Guard: number of the last messages",
            hint="Empty: no guard. At either bound the share falls to 0 by itself.",
            flag="--guard-messages",
            metavar="N",
        ),
    ]
    errors_percent: Annotated[
        float | None,
        Field(ge=0, le=100, description="At most this many that the candidate could not read."),
        Asked(label="At most this percentage fails", flag="--guard-errors", metavar="PERCENT"),
    ] = None
    differences_percent: Annotated[
        float | None,
        Field(ge=0, le=100, description="At most this many read differently; needs `shadow`."),
        Asked(
            label="At most this percentage is read differently",
            flag="--guard-differences",
            metavar="PERCENT",
        ),
    ] = None


class RolloutChange(PartialChange):
    """Rollout to set; a member that is left out stays as it is. The log stores `why`: no personal data there."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "properties": {"hold": {"const": None}},
                "propertyNames": {"enum": ["hold", "why"]},
            }
        },
    )

    hold: Annotated[
        bool | None,
        Field(description="Messages are stored, not processed, from the next claim on."),
    ] = None
    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""
    stable: Annotated[
        str | None,
        Field(
            max_length=100,
            description="Who reads what the candidate does not: another fleet's name@version; null: our stable version.",
        ),
        Asked(label="Stable reading", hint="Empty: our stable version.", null="ours"),
    ] = None
    candidate: Annotated[
        str | None,
        Field(
            max_length=100,
            description="A registered version of the carrier, or another fleet's name@version; null ends the rollout.",
        ),
        Asked(hint="Our version, or another fleet's name@version. Empty: it ends.", null="none"),
    ] = None
    percent: Annotated[
        int,
        Field(ge=0, le=PERCENT_MAX, description="The share of messages that the candidate reads."),
        Asked(label="Share of its messages, in percent"),
    ] = 0
    shadow: Annotated[
        bool,
        Field(
            description="Reads each message with both versions and stores the differences; no effect otherwise."
        ),
        Asked(label="Shadow: read every message with both, and store the differences"),
    ] = False
    guard: Annotated[GuardBounds | None, Field(description="Null: it never falls back.")] = None
    fallback_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=FALLBACK_SECONDS_MAX,
            description="What a fleet did not lease in that time the other reader takes, once it has asked for nothing so long.",
        ),
    ] = FALLBACK_SECONDS
    force: Annotated[
        bool,
        Field(
            description="Raises the share though the shadow shows other event ids. Needs `why`; the log stores it."
        ),
    ] = False
    dry_run: Annotated[bool, Field(description="Checks the change, and makes none.")] = False

    @model_validator(mode="after")
    def _turns_something(self) -> Self:
        if self.hold is None and not self.model_fields_set & _DIAL:
            raise ValueError(
                "name what to turn: hold, stable, candidate, percent, shadow, guard or fallback_seconds"
            )
        if self.force and not self.why:
            raise ValueError("a forced share needs a reason: `why`")
        return self

    def applied_to(self, present: Rollout) -> RolloutSettings | None:
        """Return the rollout to set; None: only the kill switch changes.

        Without a candidate the rollout ends.
        """
        named = self.model_fields_set & _DIAL
        if not named:
            return None
        ends = "candidate" in named and self.candidate is None
        guard = Guard(**self.guard.model_dump()) if self.guard is not None else None
        return RolloutSettings(
            candidate=self.candidate if "candidate" in named else present.candidate,
            percent=self.percent if "percent" in named or ends else present.percent,
            shadow=self.shadow if "shadow" in named or ends else present.shadow,
            guard=guard if "guard" in named or ends else present.guard,
            stable=self.stable if "stable" in named else present.stable,
            fallback_seconds=self.fallback_seconds
            if "fallback_seconds" in named
            else present.fallback_seconds,
        )


class ShownReading(TypedDict):
    """Either reading of a carrier that another fleet shares."""

    reading: Annotated[str, Field(description="name@version; `statesvc`: ours.")]
    role: Literal["stable", "candidate"]
    share: Annotated[int, Field(description="In percent.")]
    asked_seconds_ago: Annotated[
        float | None, Field(description="When it last asked for messages; null: never.")
    ]
    waiting: Annotated[
        int, Field(description=f"Messages that it may lease; {COUNT_MAX} means at least.")
    ]
    oldest_seconds: float | None
    leased: int
    fallbacks: Annotated[
        int, Field(description="Its messages that others took because it left them.")
    ]


class ShownRollout(TypedDict):
    """The rollout of a carrier."""

    carrier_id: str
    stable: str | None
    candidate: str | None
    percent: int
    shadow: bool
    hold: bool
    held: Annotated[
        bool, Field(description="Its messages wait: by its own kill switch, or by the one of all.")
    ]
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str
    turned_at: Annotated[
        AwareDatetime | None,
        Field(description="Since when candidate, share and guard are as they are."),
    ]
    guard: Guard | None
    fallback_seconds: int
    readings: Annotated[
        list[ShownReading], Field(description="Of a carrier that another fleet shares; else empty.")
    ]
    warnings: Annotated[
        list[str],
        Field(description="What it asks for, and some workers cannot do, or nobody asks for."),
    ]


class DiffsParameters(PageParameters):
    """Differences of a carrier's candidate."""

    carrier_id: Annotated[Name, Field(description="A carrier_id.")]
    candidate: Annotated[
        Name | None, Field(description="Only those of this version; left out: of all.")
    ] = None


class TrialTotals(TypedDict):
    """Results of the current candidate's trial, since it was named."""

    candidate: str | None
    messages: int
    errors: Annotated[
        int, Field(description="Messages that it could not read and the stable version could.")
    ]
    differing: int
    fields: Annotated[
        dict[str, int], Field(description="How often each field was read differently.")
    ]
    dropped: Annotated[
        int, Field(description="Messages that another fleet was to try, and did not in time.")
    ]


class DiffsPage(TypedDict):
    """A page of differences, the newest first."""

    items: list[StoredDifference]
    next_cursor: str | None
    totals: TrialTotals


@operation(
    "GET /v1/rollouts",
    scope="ops",
    tag=_TAG,
    view=Table(
        *_SHOWN, empty="no rollout was ever set: each carrier is read by its stable version"
    ),
    commands=(
        Command(
            name="rollout show",
            summary="every rollout that was ever set; of one carrier, what its candidate read differently",
        ),
    ),
)
async def list_rollouts(context: Context, call: Call[None, None]) -> Page[ShownRollout]:  # noqa: ARG001 - it takes nothing
    """List rollouts.

    Every rollout that was ever set, that of all carriers first.
    """
    async with context.pool.connection() as connection:
        turned = await stored_rollouts(connection)
        lacking, readings = await lacking_workers(connection), await list_readings(connection)
    all_held = any(rollout.hold for rollout in turned if rollout.carrier_id == ALL)
    states = [RolloutState(rollout, held=rollout.hold or all_held) for rollout in turned]
    return Page([_shown(state, lacking, readings) for state in states], None)


@operation(
    f"GET {_ONE}",
    scope="ops",
    tag=_TAG,
    problems=(Code.UNKNOWN_CARRIER,),
    view=(
        Details(*_SHOWN, Column(words.fallback, "Fallback")),
        Table(
            Column(words.reader, "Reading"),
            "role",
            Column(words.share, "Share"),
            Column(words.asked, "Asked"),
            "waiting",
            "leased",
            Column("fallbacks", "Left to others"),
            of="readings",
        ),
        Sentences(words.warnings),
    ),
    commands=(
        Command(
            name="rollout show",
            summary="every rollout that was ever set; of one carrier, what its candidate read differently",
            also=(Also("list_rollout_diffs", "differences", given=("candidate",)),),
        ),
    ),
)
async def get_rollout(context: Context, call: Call[RolloutParameters, None]) -> ShownRollout:
    """Show a carrier's rollout."""
    carrier_id = _carrier_id(context, call.parameters.carrier_id)
    async with context.pool.connection() as connection:
        return await _read(connection, carrier_id)


@operation(
    f"PUT {_ONE}",
    scope="ops",
    tag=_TAG,
    rules=(
        "The candidate is a registered version of this carrier or another fleet's name@version, and not the stable reading.",
        "Shares and guards take a candidate.",
        "A share is not raised while the shadow shows differing event ids, unless forced.",
    ),
    problems=(Code.UNKNOWN_CARRIER,),
    view=Sentences(words.turned),
    commands=(
        Command(
            name="rollout set",
            summary="give a candidate version, or another fleet, a share of a carrier's messages",
            fields=(*_FIELDS, "fallback_seconds", "force", "why"),
            required=("percent",),
            defaults={"shadow": False, "guard": None},
        ),
        Command(
            name="rollout hold",
            summary="keep a carrier's messages, process none",
            fields=("why",),
            fixed={"hold": True},
            view=_HELD,
        ),
        Command(
            name="rollout release",
            summary="process them again",
            fields=("why",),
            fixed={"hold": False},
            view=_RELEASED,
        ),
    ),
    forms=(
        Form(
            path=_PAGE + "/rollout",
            title="Change the rollout of {carrier_id}",
            button="Turn it",
            fields=_FIELDS,
            preview="get_rollout",
            is_filled=True,
            then=_PAGE,
            section="/console/carriers",
        ),
        Form(
            path="/console/carriers/{carrier_id}/hold",
            title="Hold {carrier_id}",
            button="Hold it",
            fixed={"hold": True},
            preview="get_queue",
            would=Sentences(would_hold),
            view=_HELD,
            then="/console/carriers/{carrier_id}",
            section="/console/carriers",
            is_drastic=True,
        ),
        Form(
            path="/console/carriers/{carrier_id}/release",
            title="Release {carrier_id}",
            button="Release it",
            fixed={"hold": False},
            preview="get_queue",
            would=Sentences(would_release),
            view=_RELEASED,
            then="/console/carriers/{carrier_id}",
            section="/console/carriers",
        ),
    ),
)
async def change_rollout(
    context: Context, call: Call[RolloutParameters, RolloutChange]
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
                violations = [Violation("/body/percent", str(error))]
                raise Problem(
                    Code.INVALID_REQUEST,
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


@operation(
    f"GET {_ONE}/diffs",
    scope="ops",
    tag=_TAG,
    problems=(Code.UNKNOWN_CARRIER, Code.INVALID_CURSOR),
    view=_TRIAL,
)
async def list_rollout_diffs(context: Context, call: Call[DiffsParameters, None]) -> DiffsPage:
    """Show the differences of a candidate.

    Found by the shadow, field by field, the newest first. Values that may name a person are
    keyed digests.
    """
    wanted = call.parameters
    carrier_id = _carrier_id(context, wanted.carrier_id)
    bound_to = {"carrier_id": carrier_id, "candidate": wanted.candidate}
    before = before_number(wanted.cursor, bound_to)
    async with context.pool.connection() as connection:
        items, more = await list_differences(
            connection, carrier_id, candidate=wanted.candidate, before=before, limit=wanted.limit
        )
        candidate = wanted.candidate or (await rollout_of(connection, carrier_id)).rollout.candidate
        totals = await totals_of(connection, carrier_id, candidate)
    return {
        "items": items,
        "next_cursor": None if more is None else encode_cursor([more], bound_to),
        "totals": {
            "candidate": candidate,
            "messages": totals.messages,
            "errors": totals.errors,
            "differing": totals.differing,
            "fields": totals.fields,
            "dropped": totals.dropped,
        },
    }


def _require_possible(context: Context, carrier_id: str, wanted: RolloutSettings) -> None:
    violations = [
        Violation(f"/body/{refused.member}", refused.why)
        for refused in refusals(wanted, context.carriers().get(carrier_id))
    ]
    if violations:
        raise Problem(
            Code.INVALID_REQUEST,
            "no candidate version can be rolled out like this; nothing was changed",
            violations=violations,
        )


def _carrier_id(context: Context, carrier_id: str) -> str:
    if carrier_id in {"all", ALL}:
        return ALL
    if carrier_id not in context.carriers():
        raise Problem(
            Code.UNKNOWN_CARRIER,
            f"{no_such_carrier(carrier_id, context.carriers())}, `all` means every one",
        )
    return carrier_id


async def _read(connection: AsyncConnection[Any], carrier_id: str) -> ShownRollout:
    readings = await list_readings(connection, carrier_id)
    return _shown(
        await rollout_of(connection, carrier_id), await lacking_workers(connection), readings
    )


def _shown(
    state: RolloutState, lacking: Sequence[Lacking], readings: Sequence[ReadingState]
) -> ShownRollout:
    rollout = state.rollout
    its = [reading for reading in readings if reading.carrier_id == rollout.carrier_id]
    unasked = [
        f"no worker asked for {reading.reading} within the last minute: is it misspelt?"
        for reading in its
        if reading.is_unasked
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
