"""Preparation of the database before any role starts: a pooler that fits, its schema, the partitions of today, connections enough."""

import asyncio
from typing import Any

import structlog
from psycopg import AsyncConnection

from statesvc.database.copy_faults import require_no_copy_faults
from statesvc.database.dsns import Dsns
from statesvc.database.migrator import migrate
from statesvc.database.open_connection import open_connection
from statesvc.database.partitions import require_partitions
from statesvc.database.room import read_room
from statesvc.log.log_months import count_archived
from statesvc.roles.connection_limits import plan_for
from statesvc.roles.pooler_faults import owner_fault, pooler_mode, require_usable_pooler
from statesvc.roles.runtime import require_database
from statesvc.seams import is_on, sentence
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.service_settings import Settings

_log = structlog.get_logger()


def prepare(settings: Settings) -> int:
    """Migrate; raise once what each role would raise again and again, MissingPartitionError among it."""
    asyncio.run(_prepare(settings))
    return 0


async def _prepare(settings: Settings) -> None:
    dsns = require_database(settings.database)
    is_embedded = settings.database.database_url is None
    if not is_embedded:
        await require_usable_pooler(dsns, settings)
        if settings.database.owner_url is not None and (
            fault := owner_fault(await pooler_mode(dsns.owner))
        ):
            _log.warning("owner_behind_pooler", why=fault)
    await _migrate(
        dsns,
        settings.database.auditor_role,
        has_owner=is_embedded or settings.database.owner_url is not None,
    )
    async with await open_connection(dsns.listen, application_name="statesvc up") as connection:
        await require_partitions(connection)
        await require_retention(connection, settings)
        await require_no_copy_faults(connection)
        if not dsns.is_pooled:
            plan_for(settings, await read_room(connection))


async def _migrate(dsns: Dsns, auditor_role: str, *, has_owner: bool) -> None:
    """Migrate; a role that does not own the tables may read the ledger, which is enough when nothing is pending."""
    if not has_owner:
        report = await migrate(dsns.owner, dsns.listen, check_only=True)
        if not report.pending:
            return
    await migrate(dsns.owner, dsns.listen, superuser_dsn=dsns.superuser, auditor_role=auditor_role)


async def require_retention(connection: AsyncConnection[Any], settings: Settings) -> None:
    """Refuse to start without the job that deletes archived bodies, or takes months out of the log, when their time has come."""
    if is_on("archive"):
        return
    if (archived := await count_archived(connection)).days:
        bound = f"STATESVC_ARCHIVE_KEEP_MONTHS is {settings.archive.keep_months}, and {archived.days} days of bodies are archived"
    elif settings.archive.log_hot_months is not None:
        bound = f"STATESVC_ARCHIVE_LOG_HOT_MONTHS is {settings.archive.log_hot_months}"
    else:
        return
    raise SettingError(f"{bound}: {sentence('archive', 'to keep that bound')}")
