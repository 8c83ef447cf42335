"""What doctor says about the auditor's role, and about the event triggers that guard the log's tables."""

from collections.abc import AsyncIterator
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.cli.doctor.finding import Finding, bad, good, warning
from statesvc.database.log_guard import TRIGGERS
from statesvc.database.queries import queries
from statesvc.settings.service_settings import Settings

_SQL = queries("statesvc.cli.doctor", "database_role_checks")
_SHOWN_MAX: Final = 5


async def examine_roles(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    """Looks at the catalogue alone."""
    async for finding in _auditor(connection, settings.database.auditor_role):
        yield finding
    async for finding in _guard(connection):
        yield finding


async def _auditor(connection: AsyncConnection[Any], role: str) -> AsyncIterator[Finding]:
    row = await (await connection.execute(_SQL["auditor"], {"role": role})).fetchone()
    if row is None:
        yield good("auditor", f"there is no role {role}: make one that may log in, and `statesvc migrate` lets it read the log")
        return
    superuser, owner, reads = row
    if superuser or owner:
        yield bad("auditor", f"{role} is {'a superuser' if superuser else 'a member of the role that owns the log'}: it must only read")
        return
    excess = [name async for (name,) in await connection.execute(_SQL["auditor_excess"], {"role": role})]
    if excess:
        shown = ", ".join(excess[:_SHOWN_MAX]) + (", ..." if len(excess) > _SHOWN_MAX else "")
        yield bad("auditor", f"{role} has more than it should: {shown}; ask who gave it, then `statesvc migrate` takes it away")
    elif not reads:
        yield warning("auditor", f"{role} may not read the log yet: run `statesvc migrate`")
    else:
        yield good("auditor", f"{role} reads the log and no key, and writes nothing")


async def _guard(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    found = dict(await (await connection.execute(_SQL["guard"], {"names": list(TRIGGERS)})).fetchall())
    off = sorted(name for name, enabled in found.items() if enabled != "A")
    if off:
        yield bad("log guard", f"somebody switched off {', '.join(off)}: find out who and why, then `statesvc migrate --guard | psql ...`")
    elif len(found) < len(TRIGGERS):
        yield warning(
            "log guard",
            "the log's tables could be dropped or altered by mistake: event triggers against that take a superuser, "
            "`statesvc migrate --guard | psql -v ON_ERROR_STOP=1 -1 ...`",
        )
    else:
        yield good("log guard", "event triggers refuse to drop, alter or rewrite the log's tables unannounced")
