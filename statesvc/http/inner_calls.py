"""The calls of the API, made in this process by a page or a command.

They have the same contract, scope, limits and entries in the log.

There is no other way from either to what an operator changes.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, NotRequired, TypedDict, TypeVar, Unpack

import orjson
from pydantic import BaseModel, ValidationError

from statesvc.http.call import Call
from statesvc.http.keys.api_keys import Caller, require_scope
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.keys.key_store import Scope
from statesvc.http.middleware import invalid
from statesvc.http.operation import Operation, RawAnswer, Route, printed
from statesvc.http.preferences import unknown_word, unknown_words

M = TypeVar("M", bound=BaseModel)
# Parameters and answer of a call, as JSON values.
Json = Any


class Fetched(NamedTuple):
    content: bytes
    headers: Mapping[str, str]


class CallArguments(TypedDict):
    """Arguments of a call.

    `given`: path and query; `why`: for a call with no such member in its body.
    """

    given: Mapping[str, Json]
    body: NotRequired[Mapping[str, Json] | None]
    why: NotRequired[str]


class InnerCalls:
    """Calls of the given routes, named by method and path as the routes are: `GET /v1/queue`."""

    def __init__(self, routes: Iterable[Route], limits: KeyLimits | None = None) -> None:
        self._routes = {f"{route.method} {route.path}": route for route in routes}
        self._limits = limits

    def operation(self, name: str) -> Operation[Any]:
        """Return the contract of a call. Raises KeyError."""
        return self._routes[name].operation

    async def call(self, caller: Caller, name: str, **stated: Unpack[CallArguments]) -> Json:
        """Return the answer's JSON; None where it has none. Raises Problem."""
        answer = await self.fetch(caller, name, **stated)
        return orjson.loads(answer.content) if answer.content else None

    async def fetch(
        self,
        caller: Caller,
        name: str,
        *,
        accept: str = "application/json",
        **stated: Unpack[CallArguments],
    ) -> Fetched:
        """Return the answer as the media type `accept`: of a call that answers a file.

        Raises Problem.
        """
        route = self._routes[name]
        contract = route.operation
        if contract.scope is not None:
            require_scope(caller, Scope(contract.scope))
        call = Call(
            caller=caller,
            parameters=(
                None
                if contract.parameters is None
                else checked_parameters(contract.parameters, stated["given"])
            ),
            body=(
                None
                if contract.request is None
                else checked_body(contract.request, stated.get("body") or {})
            ),
            said=stated.get("why", ""),
            accept=accept,
        )
        if route.run is None:
            raise TypeError(f"{name} is a call of HTTP alone")
        limited = self._limits is not None and contract.is_limited
        with (
            self._limits.call(caller.key_id, is_computed=contract.is_computed)
            if self._limits and limited
            else nullcontext()
        ):
            value = await route.run(call)
        if isinstance(value, RawAnswer):
            return Fetched(value.content, call.headers)
        return Fetched(b"" if value is None else printed(value), call.headers)


def checked_body(model: type[M], values: Mapping[str, Json]) -> M:
    """Return the values as the body of a call has them; numbers may be texts, as forms send them.

    Raises Problem.
    """
    try:
        return model.model_validate_json(orjson.dumps(values))
    except ValidationError as error:
        raise invalid(error, "body", model) from None


def checked_parameters(model: type[BaseModel], given: Mapping[str, Json]) -> BaseModel:
    """Return the values as the parameters of a call. Raises Problem."""
    try:
        checked = model.model_validate(
            {name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as error:
        raise invalid(error, "query", model) from None
    if warnings := unknown_words(checked):
        raise unknown_word(warnings)
    return checked
