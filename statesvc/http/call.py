"""A call of an operation, from any face: HTTP, a form of the console, or a local command."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from statesvc.http.keys.api_keys import Caller
from statesvc.http.problem import Code, Problem

P = TypeVar("P")
B = TypeVar("B")

WHY_HEADER: Final = "Statesvc-Why"
WHY_CHARS_MAX: Final = 1000


@dataclass(slots=True, kw_only=True)
class Call(Generic[P, B]):
    """A call with its caller, and checked parameters and body.

    An operation may set `status` and `headers` of the answer. `said`: the caller's reason,
    where the body has no member for it. `accept`: the preferred media type. `known_tags`: those
    of `If-None-Match`. `is_recorded`: the call left an entry in the log, though it only reads.
    """

    caller: Caller
    parameters: P
    body: B
    said: str = ""
    accept: str = "application/json"
    known_tags: Collection[str] = ()
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_recorded: bool = False

    @property
    def why(self) -> Mapping[str, str]:
        """`why`, for the details of the log's entry; empty where the caller did not say.

        Raises Problem.
        """
        return why_details(self.said)


def why_details(said: str) -> Mapping[str, str]:
    why = said.strip()
    if len(why) > WHY_CHARS_MAX or not why.isprintable():
        raise Problem(
            Code.INVALID_REQUEST,
            f"the header {WHY_HEADER} takes at most {WHY_CHARS_MAX} printable characters",
        )
    return {"why": why} if why else {}
