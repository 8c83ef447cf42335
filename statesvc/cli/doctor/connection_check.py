"""Check that the processes that run may have as many connections as they want, with the sum."""

from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.connection_bound import read_connection_bound
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.health.running_processes import read_processes
from statesvc.roles.connection_limits import DIRECT, ONE_OF_EACH, ConnectionPlan
from statesvc.settings.service_settings import CONNECTIONS_MIN, Settings

_ABOUT: Final = "connections"


async def check_connections(connection: AsyncConnection[Any], settings: Settings) -> Finding:
    """Count the recently seen processes; a process of each role if there are none."""
    bound = await read_connection_bound(connection)
    running = [
        process.role
        for process in await read_processes(connection)
        if process.role in DIRECT and not process.is_silent
    ]
    roles = sorted(running, key=ONE_OF_EACH.index) or ONE_OF_EACH
    least, wanted = (
        ConnectionPlan.of(CONNECTIONS_MIN),
        ConnectionPlan.of(settings.database.database_connections),
    )
    if bound.left < least.wanted(roles):
        return fail(
            _ABOUT,
            f"too few: at least {least.arithmetic(roles)}, but {bound.why}: {bound.left} left",
        )
    if bound.left < wanted.wanted(roles):
        hint = "" if len(roles) <= len(ONE_OF_EACH) else ", or lower STATESVC_DATABASE_CONNECTIONS"
        return warn(
            _ABOUT,
            f"slower than it could be: {wanted.arithmetic(roles)} are wanted, but {bound.why}:"
            f" {bound.left} left{hint}",
        )
    return ok(_ABOUT, f"{wanted.arithmetic(roles)} at most, and {bound.left} may be had")
