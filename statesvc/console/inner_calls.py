"""The calls of the API, made by a page in this process: same contract, same scope, same limits, same entries in the log.

There is no other way from a page to what an operator changes.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from statesvc.http.api_keys import CALLER, Caller, require_scope
from statesvc.http.key_limits import KeyLimits
from statesvc.http.key_store import Scope
from statesvc.http.middleware import invalid
from statesvc.http.operation import BODY, PARAMETERS, Route

Json = Any
"""What a call answers, and takes: values as JSON has them."""


class InnerCalls:
    """Those of the given routes, named by method and path as the routes are: `GET /v1/queue`."""

    def __init__(self, routes: Iterable[Route], limits: KeyLimits | None = None) -> None:
        self._routes = {f"{route.method} {route.path}": route for route in routes}
        self._limits = limits

    def scope(self, name: str) -> Scope | None:
        """What a caller must have for it. Raises KeyError."""
        scope = self._routes[name].operation.scope
        return None if scope is None else Scope(scope)

    async def call(
        self, request: web.Request, caller: Caller, name: str, *, given: Mapping[str, Json], body: Mapping[str, Json] | None = None
    ) -> Json:
        """The answer's JSON; None where it has none. `given`: the parameters of path and query. Raises Problem.

        `request` is what the browser asked; its own body must not have been read (read a copy).
        """
        route = self._routes[name]
        contract = route.operation
        inner = request.clone(method=route.method, headers={})
        inner[CALLER] = caller
        if contract.scope is not None:
            require_scope(caller, Scope(contract.scope))
        if contract.parameters is not None:
            inner[PARAMETERS] = _checked(contract.parameters, given, "query")
        if contract.request is not None:
            inner[BODY] = _checked(contract.request, body or {}, "body")
        limited = self._limits is not None and contract.is_limited
        with self._limits.call(caller.key_id, is_computed=contract.is_computed) if self._limits and limited else nullcontext():
            answer = await route.handler(inner)
        if not isinstance(answer, web.Response):
            raise TypeError(f"{name} streams; a page cannot read it")
        return orjson.loads(answer.body) if isinstance(answer.body, bytes) and answer.body else None


def _checked(model: type[BaseModel], given: Mapping[str, Json], part: str) -> BaseModel:
    try:
        return model.model_validate_json(orjson.dumps(given)) if part == "body" else model.model_validate(given)
    except ValidationError as error:
        raise invalid(error, part) from None
