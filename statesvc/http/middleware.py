"""What every call passes through before its handler: key and scope, parameters, body, deadline; and after it: the problem form."""

import asyncio
from typing import Final

import psycopg
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler as NextHandler

from statesvc.database.sql_errors import Failure, failure
from statesvc.http.api_keys import CALLER, Keys
from statesvc.http.operation import BODY, PARAMETERS, Handler, Route
from statesvc.http.problem import Code, Problem, from_aiohttp
from statesvc.http.scope import Scope
from statesvc.http.validation import Parameters, checked_body
from statesvc.log.archive.log_archive_errors import LogArchiveError

_log = structlog.get_logger()
_AWAY: Final = frozenset({Failure.UNAVAILABLE, Failure.TRANSIENT})


def guarded(route: Route, keys: Keys) -> Handler:
    """The route's handler behind the checks that its operation declares."""
    contract = route.operation
    scope = None if contract.scope is None else Scope(contract.scope)
    if scope is None and not contract.checked and contract.deadline_seconds is None:
        return route.handler
    expected = Parameters(contract.parameters)

    async def call(request: web.Request) -> web.StreamResponse:
        if scope is not None:
            request[CALLER] = await keys.require(request, scope)
        if contract.checked:
            given = expected.checked(request)
            if given is not None:
                request[PARAMETERS] = given
            if contract.request is not None:
                request[BODY] = await checked_body(request, contract.request)
        return await route.handler(request)

    if contract.deadline_seconds is None:
        return call
    deadline_seconds = contract.deadline_seconds

    async def call_in_time(request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(deadline_seconds):
                return await call(request)
        except TimeoutError:
            raise Problem(Code.TIMED_OUT, f"no answer within {deadline_seconds:g} s; try again, or ask for less") from None

    return call_in_time


@web.middleware
async def problems(request: web.Request, handler: NextHandler) -> web.StreamResponse:
    """Everything that goes wrong leaves as a problem. What the client sees never holds an exception's text."""
    try:
        return await handler(request)
    except (Problem, LogArchiveError) as error:
        return _told(request, error).response()
    except web.HTTPException as error:
        translated = from_aiohttp(error)
        if translated is None:
            raise
        return translated.response()
    except psycopg.Error as error:
        if failure(error) not in _AWAY:
            return _defect(request, error)
        _log.warning("database_unavailable", route=_route(request), error_type=type(error).__name__, sqlstate=error.sqlstate)
        return Problem(Code.DATABASE_UNAVAILABLE, "the database does not answer now; try again").response()
    except Exception as error:  # noqa: BLE001 - the last line: the client gets a problem, the log the traceback
        return _defect(request, error)


def _told(request: web.Request, error: Problem | LogArchiveError) -> Problem:
    if isinstance(error, Problem):
        return error
    _log.error("log_archive_unavailable", route=_route(request), why=str(error))
    return Problem(Code.LOG_UNAVAILABLE, str(error))


def _defect(request: web.Request, error: Exception) -> web.StreamResponse:
    _log.error("request_failed", route=_route(request), error_type=type(error).__name__, exc_info=error)
    return Problem(Code.INTERNAL_ERROR, "the request failed here; the log has the reason").response()


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical
