"""What doctor says about a pooler between the service and its server: which of the settings for it is wrong, and what to do."""

from collections.abc import AsyncIterator
from typing import Final

import psycopg
from psycopg import capabilities

from statesvc.cli.doctor.finding import Finding, bad, good, warning
from statesvc.cli.doctor.pooler_route import Route, carries_prepared, limits_in_transaction, route_to
from statesvc.database.dsns import Dsns
from statesvc.database.sql_errors import ADVICE
from statesvc.roles.connection_limits import worker_limits
from statesvc.settings.service_settings import Settings

_PREPARED: Final = "prepared statements"
_LISTEN: Final = "set STATESVC_LISTEN_URL to the server itself"


async def pooling(dsns: Dsns, settings: Settings) -> AsyncIterator[Finding]:
    """The addresses one by one: that of the service, that for LISTEN, the owner's."""
    service = await route_to(dsns.service)
    listen = await route_to(dsns.listen) if dsns.is_pooled else service
    yield _wake_ups(listen, is_own=dsns.is_pooled)
    if service is Route.TRANSACTION:
        yield await _limits(dsns, settings)
        yield await _prepared(dsns, is_on=settings.database.prepared_statements)
    elif not settings.database.prepared_statements:
        yield warning(_PREPARED, "are off without need, so every statement is planned anew: unset STATESVC_PREPARED_STATEMENTS")
    if service is Route.DIRECT and dsns.is_pooled:
        yield warning(
            "pooler",
            "STATESVC_LISTEN_URL is set, but DATABASE_URL leads to the server itself: each transaction carries time limits for no pooler",
        )
    async for finding in _migrations(dsns, settings, service):
        yield finding


def _wake_ups(route: Route, *, is_own: bool) -> Finding:
    variable = "STATESVC_LISTEN_URL" if is_own else "DATABASE_URL"
    match route:
        case Route.DIRECT:
            return good("wake-ups", "LISTEN has a direct connection")
        case Route.SESSION:
            return good("wake-ups", f"{variable} leads through a pooler in session mode, where LISTEN works")
        case Route.TRANSACTION:
            return bad("wake-ups", f"{variable} leads through a pooler in transaction mode: {_LISTEN}, or wake-ups are lost")


async def _limits(dsns: Dsns, settings: Settings) -> Finding:
    if not dsns.is_pooled:
        return bad(
            "time limits",
            f"without STATESVC_LISTEN_URL the pooler is taken for the server, and time limits hit whoever gets the session next: {_LISTEN}",
        )
    limits = worker_limits(settings)
    wanted = limits.milliseconds()
    found = await limits_in_transaction(dsns.service, limits, direct=False)
    lost = ", ".join(f"{name} is {found.get(name)}, not {value}" for name, value in wanted.items() if found.get(name) != value)
    if lost:
        return bad("time limits", f"are lost on the way through the pooler ({lost}): it must be in transaction mode")
    return good("time limits", "travel with each transaction through the pooler")


async def _prepared(dsns: Dsns, *, is_on: bool) -> Finding:
    if not is_on:
        return good(_PREPARED, "off, which works behind every pooler")
    if not await carries_prepared(dsns.service):
        return bad(_PREPARED, ADVICE["26000"])
    if not capabilities.has_send_close_prepared():
        return bad(
            _PREPARED,
            "the pooler carries them, but libpq here is older than 17 and can't take them back through it: "
            "install psycopg[binary] 3.2 or later, or set STATESVC_PREPARED_STATEMENTS=false",
        )
    return good(_PREPARED, "the pooler carries them")


async def _migrations(dsns: Dsns, settings: Settings, service: Route) -> AsyncIterator[Finding]:
    what = "migrations hold a lock on one session: set STATESVC_OWNER_URL to the server itself"
    if settings.database.owner_url is None:
        if service is Route.TRANSACTION:
            yield bad("owner", f"DATABASE_URL leads through a pooler in transaction mode; {what}")
        return
    try:
        route = await route_to(dsns.owner)
    except psycopg.OperationalError as error:
        yield warning("owner", f"STATESVC_OWNER_URL does not answer ({type(error).__name__}): nobody can migrate from here")
        return
    if route is Route.TRANSACTION:
        yield bad("owner", f"STATESVC_OWNER_URL leads through a pooler in transaction mode; {what}")
