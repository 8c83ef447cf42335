"""One call of an operation, by whichever face it came: HTTP, a form of the console, or a command in its own process."""

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
    """A call with its caller, and checked parameters and body. `status` and `headers` are for the answer: an operation may set them.

    `said`: why the caller does it, where the body has no member for that. `accept`: the media type that the answer should have.
    `known_tags`: of answers that the caller has (`If-None-Match`).
    `is_recorded`: the call left an entry in the log, though it only reads.
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
        """`why`, for the details of the log's entry; empty where the caller did not say. Raises Problem."""
        return why_details(self.said)


def why_details(said: str) -> Mapping[str, str]:
    """Return the details of `Call.why`."""
    why = said.strip()
    if len(why) > WHY_CHARS_MAX or not why.isprintable():
        raise Problem(
            Code.INVALID_REQUEST,
            f"the header {WHY_HEADER} takes at most {WHY_CHARS_MAX} printable characters",
        )
    return {"why": why} if why else {}
