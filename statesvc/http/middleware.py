"""Middleware of every call: key, scope, parameters, body and deadline before, problems after it.

A faulty request is reported by place and rule, never with the rejected values.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import psycopg
import structlog
from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler as NextHandler
from pydantic import BaseModel, ValidationError

from statesvc.database.pool import PoolBusyError
from statesvc.database.sql_errors import Failure, failure
from statesvc.files.archive_errors import AddOnMissingError, UnreadableArchiveError
from statesvc.http.keys.api_keys import CALLER, Keys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import BODY, PARAMETERS, Handler, Operation, Route
from statesvc.http.preferences import STRICT, WARNINGS, is_strict, unknown_word, unknown_words
from statesvc.http.problem import Code, Problem, Violation, from_aiohttp
from statesvc.http.violation_text import violation_text

# The id of the key that limits the call.
LIMITED_KEY: Final = web.RequestKey("limited_key", str)
_log = structlog.get_logger()
_AWAY: Final = frozenset({Failure.UNAVAILABLE, Failure.TRANSIENT})
_NUMBERS: Final[dict[type, re.Pattern[str]]] = {
    int: re.compile(r"-?[0-9]+"),
    float: re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"),
}
_BUSY_SECONDS: Final = 1
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
# The second is aiohttp's value for a request without a Content-Type.
_JSON_TYPES: Final = frozenset({"application/json", "application/octet-stream"})


def names_of(model: type[BaseModel]) -> tuple[frozenset[str], frozenset[str]]:
    """Return all names that it takes, and those of lists.

    Its JSON schema has them too, and takes megabytes to build.
    """
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return frozenset(fields), frozenset(
        name for name, annotation in fields.items() if _is_list(annotation)
    )


def numbers_of(model: type[BaseModel]) -> dict[str, type]:
    found = {
        field.alias or name: _number_type(field.annotation)
        for name, field in model.model_fields.items()
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def _number_type(annotation: object) -> type | None:
    if annotation in {int, float}:
        return int if annotation is int else float
    if get_origin(annotation) in {Union, UnionType, Annotated}:
        return next(
            (kind for kind in map(_number_type, get_args(annotation)) if kind is not None), None
        )
    return None


def _is_list(annotation: object) -> bool:
    origin = get_origin(annotation)
    if origin in {Union, UnionType, Annotated}:
        return any(map(_is_list, get_args(annotation)))
    return (origin or annotation) in {list, tuple, set, frozenset}


class Parameters:
    """Parameters of a call in its path and query. Without a model the query must be empty."""

    def __init__(self, model: type[BaseModel] | None) -> None:
        self._model = model
        self._names, self._repeatable = (
            (frozenset(), frozenset()) if model is None else names_of(model)
        )
        self._numbers = {} if model is None else numbers_of(model)

    def checked(self, request: web.Request) -> BaseModel | None:
        """Return the parameters as the model has them. Raises the problem `invalid_request`."""
        path = request.match_info
        given: dict[str, Any] = {name: value for name, value in path.items() if name in self._names}
        violations = []
        for name in dict.fromkeys(request.query):
            values = request.query.getall(name)
            if name not in self._names or name in path:
                takes = ", ".join(sorted(self._names - set(path))) or "none"
                # what is no word is a value in the wrong place, and is not repeated
                place = f"/query/{name}" if _WORD.fullmatch(name) else "/query"
                violations.append(
                    Violation(place, f"this call has no such parameter; it takes: {takes}")
                )
            elif name in self._repeatable:
                given[name] = values
            elif len(values) > 1:
                violations.append(Violation(f"/query/{name}", "stands more than once"))
            else:
                given[name] = values[0]
        # pydantic would take the integers 1.0, +5 and 1_000 too
        for name in self._numbers.keys() & given.keys():
            kind = self._numbers[name]
            if not _NUMBERS[kind].fullmatch(given[name]):
                violations.append(
                    Violation(
                        f"/query/{name}",
                        f"should be {'an integer' if kind is int else 'a number'}, written in"
                        " digits",
                    )
                )
        if violations:
            raise Problem(
                Code.INVALID_REQUEST, "the parameters break the contract", violations=violations
            )
        if self._model is None:
            return None
        try:
            return self._model.model_validate(given)
        except ValidationError as error:
            raise invalid(error, "query", self._model) from None


async def checked_body(
    request: web.Request, model: type[BaseModel], *, is_optional: bool = False
) -> BaseModel:
    """Return the body as the model has it; raise the problem `invalid_request` where it breaks it.

    `is_optional`: no body is an empty object.
    """
    if request.content_type not in _JSON_TYPES:
        raise Problem(
            Code.UNSUPPORTED_MEDIA_TYPE,
            "send application/json",
            headers={hdrs.ACCEPT: "application/json"},
        )
    try:
        content = await whole_body(request)
        # a number is no truth value and a text no number: what the document says is what is taken
        return _validated(model, b"{}" if is_optional and not content else content)
    except ValidationError as error:
        raise invalid(error, "body", model) from None


def _validated(model: type[BaseModel], content: bytes) -> BaseModel:
    """Validate.

    Raises ValidationError. To JSON Schema 60.0 is an integer; to pydantic, where it is strict, it
    is none.
    """
    try:
        return model.model_validate_json(content, strict=True)
    except ValidationError as error:
        if all(
            detail["type"] != "int_type"
            for detail in error.errors(
                include_url=False, include_input=False, include_context=False
            )
        ):
            raise
        return model.model_validate_json(
            json.dumps(json.loads(content, parse_float=_whole)), strict=True
        )


def _whole(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


async def whole_body(request: web.Request) -> bytes:
    """Read the body.

    Raises the problem `bad_request` where the client hangs up in the middle, or frames it wrongly.
    """
    try:
        return await request.read()
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError):
        raise Problem(Code.BAD_REQUEST, "the body broke off, or its framing is wrong") from None


def invalid(error: ValidationError, part: str, model: type[BaseModel]) -> Problem:
    """Return the problem of an invalid part; `part`: `query` or `body`."""
    members = ", ".join(sorted(names_of(model)[0]))
    violations = []
    for flaw in error.errors(include_url=False, include_input=False):
        # pydantic marks the key of a map, which its value's place names already
        place = [str(step) for step in flaw["loc"] if step != "[key]"]
        violations.append(
            Violation(
                "/".join(["", part, *place]),
                violation_text(flaw, members if len(place) == 1 else None),
            )
        )
    what = "the parameters break" if part == "query" else "the body breaks"
    return Problem(Code.INVALID_REQUEST, f"{what} the contract", violations=violations)


def guarded(route: Route, keys: Keys | None, limits: KeyLimits | None = None) -> Handler:
    """Return the route's handler behind its operation's checks and the limits of keys."""
    contract = route.operation
    if contract.scope is None and not contract.checked and contract.deadline_seconds is None:
        return route.handler
    call = _checked(route)
    if contract.scope is not None:
        if keys is None:
            raise ValueError(f"{contract.operation_id} has a scope: it needs keys")
        call = _allowed(
            call, contract, Scope(contract.scope), keys, limits if contract.is_limited else None
        )
    if contract.deadline_seconds is None:
        return call
    deadline_seconds = contract.deadline_seconds

    async def call_in_time(request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(deadline_seconds):
                return await call(request)
        except TimeoutError:
            raise Problem(
                Code.TIMED_OUT,
                f"no answer within {deadline_seconds:g} s; try again, or ask for less",
            ) from None

    return call_in_time


def _checked(route: Route) -> Handler:
    """Return the handler behind the checks of parameters and body."""
    contract = route.operation
    expected = Parameters(contract.parameters)

    async def call(request: web.Request) -> web.StreamResponse:
        if contract.checked:
            strict = is_strict(request)
            request[STRICT] = strict
            given = expected.checked(request)
            if given is not None:
                request[PARAMETERS] = given
                warnings = unknown_words(given)
                if warnings and strict:
                    raise unknown_word(warnings)
                request[WARNINGS] = warnings
            if contract.request is not None:
                request[BODY] = await checked_body(
                    request, contract.request, is_optional=contract.is_body_optional
                )
        return await route.handler(request)

    return call


def _allowed(
    handler: Handler, contract: Operation[Any], scope: Scope, keys: Keys, limits: KeyLimits | None
) -> Handler:
    """Admit callers with the scope, within the limits of their key."""

    async def call(request: web.Request) -> web.StreamResponse:
        caller = (
            None if contract.credential is None else await contract.credential.caller(request, keys)
        )
        request[CALLER] = caller = caller or await keys.require(request, scope)
        if limits is None:
            return await handler(request)
        request[LIMITED_KEY] = caller.key_id
        with limits.call(caller.key_id, is_computed=contract.is_computed):
            return await handler(request)

    return call


def showing_limits(
    limits: KeyLimits,
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Add to each answer of a limited call the remaining quota of its key.

    To refusals too; for `on_response_prepare`.
    """

    async def show(request: web.Request, response: web.StreamResponse) -> None:
        key_id = request.get(LIMITED_KEY)
        if key_id is not None:
            response.headers.update(limits.headers(key_id))

    return show


@web.middleware
async def problems(request: web.Request, handler: NextHandler) -> web.StreamResponse:
    """Turn every error into a problem. The client never sees an exception's text."""
    try:
        return await handler(request)
    except (Problem, UnreadableArchiveError) as error:
        return _problem_of(request, error).response()
    except web.HTTPException as error:
        translated = from_aiohttp(error)
        if translated is None:
            raise
        if translated.code is Code.NOT_FOUND and (
            request.path.endswith("/") or "//" in request.path
        ):
            translated = Problem(
                Code.NOT_FOUND,
                "no such path: it ends with a slash, or a part of it is empty; /docs lists all"
                " calls",
            )
        return translated.response()
    except psycopg.Error as error:
        return _database_problem(request, error)
    # the last line: the client gets a problem, the log the traceback
    except Exception as error:  # noqa: BLE001
        return _defect(request, error)


def _database_problem(request: web.Request, error: psycopg.Error) -> web.StreamResponse:
    if isinstance(error, PoolBusyError):
        return Problem(
            Code.TOO_MANY_REQUESTS,
            "more calls wait for the database than it answers in time; wait a little",
            headers={hdrs.RETRY_AFTER: str(_BUSY_SECONDS)},
        ).response()
    if failure(error) not in _AWAY:
        return _defect(request, error)
    _log.warning(
        "database_unavailable",
        route=_route(request),
        error_type=type(error).__name__,
        sqlstate=error.sqlstate,
    )
    return Problem(
        Code.DATABASE_UNAVAILABLE, "the database does not answer now; try again"
    ).response()


def _problem_of(request: web.Request, error: Problem | UnreadableArchiveError) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, AddOnMissingError):
        return Problem(Code.ADDON_MISSING, str(error))
    _log.error("log_archive_unavailable", route=_route(request), why=str(error))
    return Problem(Code.LOG_UNAVAILABLE, str(error))


def _defect(request: web.Request, error: Exception) -> web.StreamResponse:
    _log.error(
        "request_failed", route=_route(request), error_type=type(error).__name__, exc_info=error
    )
    return Problem(
        Code.INTERNAL_ERROR, "the request failed here; the log has the reason"
    ).response()


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical
