"""What a call promises: its scope, what it takes, what it answers. Checked before the handler runs, and shown in OpenAPI.

A handler reads what was checked through `parameters` and `body`; a query parameter or a member that the contract does not
name is refused, so that a typing error never silently widens a list.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel

from statesvc.http.problem import OK, Code
from statesvc.http.scope import Scope

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
M = TypeVar("M", bound=BaseModel)
ScopeWord = Literal["ingest", "read", "audit", "pii", "subscriptions", "ops", "admin"]

PARAMETERS: Final = web.RequestKey("parameters", BaseModel)
BODY: Final = web.RequestKey("body", BaseModel)

DEADLINE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The contract of one call.

    `parameters` is a model of the path's and the query's parameters (a field named as in the path is the path's). `statuses`
    describes the answers in words. `checked` False: the handler takes any query and checks the rest itself (webhooks).
    `deadline_seconds` None: the answer may stream for as long as it likes.
    """

    summary: str
    scope: Scope | ScopeWord | None
    description: str = ""
    tag: str = ""
    parameters: type[BaseModel] | None = None
    request: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    response_types: tuple[str, ...] = ("application/json",)
    statuses: Mapping[int, str] = field(default_factory=lambda: {OK: "done"})
    problems: tuple[Code, ...] = ()
    checked: bool = True
    deadline_seconds: float | None = DEADLINE_SECONDS


operation = Operation
"""How route modules spell it: `operation(summary=..., scope="read", ...)`."""


@dataclass(frozen=True, slots=True)
class Route:
    """One call: where it is, who answers, what it promises."""

    method: str
    path: str
    handler: Handler
    operation: Operation


def parameters(request: web.Request, model: type[M]) -> M:
    """The checked parameters of the call."""
    value = request[PARAMETERS]
    if not isinstance(value, model):
        raise TypeError(f"the operation declares {type(value).__name__}, the handler reads {model.__name__}")
    return value


def body(request: web.Request, model: type[M]) -> M:
    """The checked body of the call."""
    value = request[BODY]
    if not isinstance(value, model):
        raise TypeError(f"the operation declares {type(value).__name__}, the handler reads {model.__name__}")
    return value
