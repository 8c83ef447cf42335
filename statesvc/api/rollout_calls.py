"""`GET` and `PUT /v1/rollouts/{carrier_id}`: a carrier's dial, the kill switch of one or of all; `/diffs`: what a candidate did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from aiohttp import web
from psycopg import AsyncConnection
from pydantic import AwareDatetime, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.api.parameters import Name
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import PartialChange, Reply, Route, answer, body, parameters, route
from statesvc.http.paging import PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem, Violation
from statesvc.inbox.rollouts.dial import ALL, PERCENT_MAX, Dial, Guard, Rollout, RolloutState, refusals, rollout_of, set_dial, set_hold
from statesvc.inbox.rollouts.trials import StoredDifference, list_differences, totals_of

WHY_LENGTH_MAX = 1000
GUARD_MESSAGES_MAX: Final = 5_000
_NEWEST: Final = 2**63 - 1
_DIAL: Final = frozenset({"candidate", "percent", "shadow", "guard"})


class RolloutParameters(ClosedModel):
    """One carrier."""

    carrier_id: Annotated[Name, Field(description="A carrier_id; `all` or `*` for all carriers.")]


class GuardBounds(ClosedModel):
    """When the rollout falls back to 0 by itself."""

    messages: Annotated[int, Field(ge=1, le=GUARD_MESSAGES_MAX, description="How many of the last messages are counted.")]
    errors_percent: Annotated[float | None, Field(ge=0, le=100, description="At most this many that the candidate could not read.")] = None
    differences_percent: Annotated[float | None, Field(ge=0, le=100, description="At most this many read differently; needs `shadow`.")] = (
        None
    )


class RolloutChange(PartialChange):
    """What to turn; a member that is left out stays as it is. The log stores `why`: no personal data there."""

    model_config = ConfigDict(
        json_schema_extra={"not": {"properties": {"hold": {"type": "null"}}, "propertyNames": {"enum": ["hold", "why"]}}},
    )

    hold: Annotated[bool | None, Field(description="Messages are stored, not processed, from the next claim on.")] = None
    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""
    candidate: Annotated[str | None, Field(max_length=100, description="A registered version of the carrier; null ends the rollout.")] = (
        None
    )
    percent: Annotated[int, Field(ge=0, le=PERCENT_MAX, description="The share of messages that the candidate reads.")] = 0
    shadow: Annotated[bool, Field(description="Reads each message with both versions and stores the differences; no effect otherwise.")] = (
        False
    )
    guard: Annotated[GuardBounds | None, Field(description="Null: it never falls back.")] = None

    @model_validator(mode="after")
    def _turns_something(self) -> Self:
        if self.hold is None and not self.model_fields_set & _DIAL:
            raise ValueError("name what to turn: hold, candidate, percent, shadow or guard")
        return self

    def dial(self, present: Rollout) -> Dial | None:
        """As it is to be; None: only the kill switch was named. Without a candidate nothing of the rollout is left."""
        named = self.model_fields_set & _DIAL
        if not named:
            return None
        ends = "candidate" in named and self.candidate is None
        guard = Guard(**self.guard.model_dump()) if self.guard is not None else None
        return Dial(
            candidate=self.candidate if "candidate" in named else present.candidate,
            percent=self.percent if "percent" in named or ends else present.percent,
            shadow=self.shadow if "shadow" in named or ends else present.shadow,
            guard=guard if "guard" in named or ends else present.guard,
        )


class ShownRollout(TypedDict):
    """The dial of a carrier."""

    carrier_id: str
    candidate: str | None
    percent: int
    shadow: bool
    hold: bool
    held: Annotated[bool, Field(description="Its messages wait: by its own kill switch, or by the one of all.")]
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str
    turned_at: Annotated[AwareDatetime | None, Field(description="Since when candidate, share and guard are as they are.")]
    guard: Guard | None


class DiffsParameters(PageParameters):
    """Differences of one carrier's candidate."""

    carrier_id: Annotated[Name, Field(description="A carrier_id.")]
    candidate: Annotated[Name | None, Field(description="Only those of this version; left out: of all.")] = None


class TrialTotals(TypedDict):
    """What the current candidate was tried on, since it was named."""

    candidate: str | None
    messages: int
    errors: Annotated[int, Field(description="Messages that it could not read and the stable version could.")]
    differing: int
    fields: Annotated[dict[str, int], Field(description="How often each field was read differently.")]


class DiffsPage(TypedDict):
    """A page of differences, the newest first."""

    items: list[StoredDifference]
    next_cursor: str | None
    totals: TrialTotals


@dataclass(frozen=True, slots=True)
class RolloutCalls:
    """The handlers."""

    pool: Connections
    waker: Wakes
    carriers: Mapping[str, Carrier]

    async def show(self, request: web.Request) -> Reply[ShownRollout]:
        """The present dial."""
        carrier_id = self._carrier_id(parameters(request, RolloutParameters).carrier_id)
        async with self.pool.connection() as connection:
            return _shown(await rollout_of(connection, carrier_id))

    async def change(self, request: web.Request) -> Reply[ShownRollout]:
        """Turns what was named; a release wakes the workers."""
        carrier_id = self._carrier_id(parameters(request, RolloutParameters).carrier_id)
        change = body(request, RolloutChange)
        async with self.pool.connection() as connection, connection.transaction():
            state = await self._turned(connection, carrier_id, change, actor=caller_of(request).actor)
        if change.hold is False:
            self.waker.wake(INBOX)
        return _shown(state)

    async def diffs(self, request: web.Request) -> Reply[DiffsPage]:
        """What the candidate read differently."""
        asked = parameters(request, DiffsParameters)
        carrier_id = self._carrier_id(asked.carrier_id)
        bound_to = {"carrier_id": carrier_id, "candidate": asked.candidate}
        before = _NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if type(before) is not int:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            found, more = await list_differences(connection, carrier_id, candidate=asked.candidate, before=before, limit=asked.limit)
            candidate = asked.candidate or (await rollout_of(connection, carrier_id)).rollout.candidate
            totals = await totals_of(connection, carrier_id, candidate)
        cursor = None if more is None else encode_cursor([more], bound_to)
        return answer(
            {
                "items": found,
                "next_cursor": cursor,
                "totals": {
                    "candidate": candidate,
                    "messages": totals.messages,
                    "errors": totals.errors,
                    "differing": totals.differing,
                    "fields": totals.fields,
                },
            }
        )

    async def _turned(self, connection: AsyncConnection[Any], carrier_id: str, change: RolloutChange, *, actor: str) -> RolloutState:
        dial = change.dial((await rollout_of(connection, carrier_id)).rollout)
        if dial is not None:
            refused = refusals(dial, self.carriers.get(carrier_id))
            if refused:
                violations = [Violation(f"/body/{each.member}", each.why) for each in refused]
                raise Problem(
                    Code.INVALID_REQUEST, "no candidate version can be rolled out like this; nothing was changed", violations=violations
                )
            await set_dial(connection, carrier_id, dial, why=change.why, actor=actor)
        if change.hold is not None:
            await set_hold(connection, carrier_id=carrier_id, hold=change.hold, why=change.why, actor=actor)
        return await rollout_of(connection, carrier_id)

    def _carrier_id(self, carrier_id: str) -> str:
        if carrier_id in {"all", ALL}:
            return ALL
        if carrier_id not in self.carriers:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them, `all` means every one")
        return carrier_id


def _shown(state: RolloutState) -> Reply[ShownRollout]:
    rollout = state.rollout
    return answer(
        {
            "carrier_id": rollout.carrier_id,
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
        }
    )


def routes(pool: Connections, waker: Wakes, *, carriers: Mapping[str, Carrier] = CARRIERS) -> Sequence[Route]:
    """The calls about rollouts."""
    rollouts = RolloutCalls(pool, waker, carriers)
    return [
        route(
            "GET /v1/rollouts/{carrier_id}",
            rollouts.show,
            operation_id="get_rollout",
            summary="Show a carrier's dial",
            scope="ops",
            tag="rollouts",
            parameters=RolloutParameters,
            response=ShownRollout,
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            "PUT /v1/rollouts/{carrier_id}",
            rollouts.change,
            operation_id="change_rollout",
            rules=("The candidate is a registered version of this one carrier, not its stable one; shares and guards take a candidate.",),
            summary="Turn a carrier's dial",
            description=(
                "In effect at the next claim of every worker. A share of the messages, the same ones each time, is read by the "
                "candidate; on hold, messages are acknowledged and stored, but not processed. Recorded as an operator action."
            ),
            scope="ops",
            tag="rollouts",
            parameters=RolloutParameters,
            request=RolloutChange,
            response=ShownRollout,
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            "GET /v1/rollouts/{carrier_id}/diffs",
            rollouts.diffs,
            operation_id="list_rollout_diffs",
            summary="Show what a candidate read differently",
            description="Found by the shadow, field by field, the newest first. Values that may name a person are keyed digests.",
            scope="ops",
            tag="rollouts",
            parameters=DiffsParameters,
            response=DiffsPage,
            problems=(Code.UNKNOWN_CARRIER, Code.INVALID_CURSOR),
        ),
    ]
