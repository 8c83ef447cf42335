"""`GET` and `PUT /v1/rollouts/{carrier_id}`: the kill switch of a carrier, or of all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Protocol

from aiohttp import web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from events.carriers import CARRIERS
from statesvc.api.parameters import Name
from statesvc.http.answer import answer
from statesvc.http.keys import Connections, caller_of
from statesvc.http.operation import Route, body, operation, parameters
from statesvc.http.problem import Code, Flaw, Problem
from statesvc.rollouts.dial import ALL, Standing, rollout_of, set_hold
from statesvc.wakeup.channels import INBOX

WHY_LENGTH_MAX = 1000


class Wakes(Protocol):
    """What of a waker is needed."""

    def wake(self, channel: str) -> None:
        """Wakes whoever sleeps on the channel."""


class RolloutParameters(BaseModel):
    """One carrier."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    carrier_id: Annotated[Name, Field(description="A carrier_id; `all` or `*` for all carriers.")]


class RolloutChange(BaseModel):
    """What to turn. The log keeps `why`: no personal data there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hold: Annotated[bool, Field(description="Messages are kept, not processed, from the next claim on.")]
    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""
    candidate: Annotated[str | None, Field(description="No carrier has a candidate version yet: null.")] = None
    percent: Annotated[int, Field(description="0 without a candidate.")] = 0
    shadow: Annotated[bool, Field(description="False without a candidate.")] = False


class RolloutShown(BaseModel):
    """The dial of a carrier."""

    model_config = ConfigDict(extra="forbid")

    carrier_id: str
    candidate: str | None
    percent: int
    shadow: bool
    hold: bool
    held: Annotated[bool, Field(description="Its messages wait: by its own kill switch, or by the one of all.")]
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The handlers."""

    pool: Connections
    waker: Wakes

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The dial as it stands."""
        carrier_id = _carrier_id(request)
        async with self.pool.connection() as connection:
            return _shown(await rollout_of(connection, carrier_id))

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Turns the kill switch; a release wakes the workers."""
        carrier_id = _carrier_id(request)
        change = body(request, RolloutChange)
        _refuse_candidate(change)
        async with self.pool.connection() as connection:
            await set_hold(connection, carrier_id=carrier_id, hold=change.hold, why=change.why, actor=caller_of(request).actor)
            standing = await rollout_of(connection, carrier_id)
        if not change.hold:
            self.waker.wake(INBOX)
        return _shown(standing)


def _carrier_id(request: web.Request) -> str:
    carrier_id = parameters(request, RolloutParameters).carrier_id
    if carrier_id in {"all", ALL}:
        return ALL
    if carrier_id not in CARRIERS:
        raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them, `all` stands for every one")
    return carrier_id


def _refuse_candidate(change: RolloutChange) -> None:
    asked = {"candidate": change.candidate is not None, "percent": change.percent != 0, "shadow": change.shadow}
    flaws = [Flaw(f"/body/{member}", "there is no candidate version to give it to") for member, is_asked in asked.items() if is_asked]
    if flaws:
        raise Problem(
            Code.INVALID_REQUEST, "this carrier has no candidate version: only `hold` can be turned, nothing was changed", flaws=flaws
        )


def _shown(standing: Standing) -> web.Response:
    return answer({**asdict(standing.rollout), "held": standing.held})


def routes(pool: Connections, waker: Wakes) -> Sequence[Route]:
    """The calls about rollouts."""
    rollouts = Rollouts(pool, waker)
    return [
        Route(
            "GET",
            "/v1/rollouts/{carrier_id}",
            rollouts.show,
            operation(
                summary="Show a carrier's dial",
                scope="ops",
                tag="rollouts",
                parameters=RolloutParameters,
                response=RolloutShown,
                problems=(Code.UNKNOWN_CARRIER,),
            ),
        ),
        Route(
            "PUT",
            "/v1/rollouts/{carrier_id}",
            rollouts.change,
            operation(
                summary="Hold or release a carrier",
                description="On hold, messages are acknowledged and kept, but not processed. Recorded as an operator action.",
                scope="ops",
                tag="rollouts",
                parameters=RolloutParameters,
                request=RolloutChange,
                response=RolloutShown,
                problems=(Code.UNKNOWN_CARRIER,),
            ),
        ),
    ]
