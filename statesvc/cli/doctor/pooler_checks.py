"""Checks of a pooler between the service and its server: wrong settings, with the remedy."""

from collections.abc import AsyncIterator
from typing import Final

import psycopg

from statesvc.database.dsns import Dsns
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.roles.pooler_faults import (
    PoolerMode,
    limits_fault,
    listen_fault,
    owner_fault,
    pooler_mode,
    prepared_fault,
)
from statesvc.settings.service_settings import Settings

_PREPARED: Final = "prepared statements"


async def check_pooler(dsns: Dsns, settings: Settings) -> AsyncIterator[Finding]:
    """Check the addresses in turn: the service's, that for LISTEN, the owner's."""
    service = await pooler_mode(dsns.service)
    yield await _wake_ups(dsns, service)
    if service is PoolerMode.TRANSACTION:
        fault = limits_fault(dsns)
        yield (
            fail("time limits", fault)
            if fault
            else ok("time limits", "travel with each transaction through the pooler")
        )
        fault = await prepared_fault(dsns, settings)
        is_on = settings.database.prepared_statements
        carried = "the pooler carries them" if is_on else "off, which works behind every pooler"
        yield fail(_PREPARED, fault) if fault else ok(_PREPARED, carried)
    elif not settings.database.prepared_statements:
        yield warn(
            _PREPARED,
            "are off without need, so every statement is planned anew: unset"
            " STATESVC_PREPARED_STATEMENTS",
        )
    if service is PoolerMode.DIRECT and dsns.is_pooled:
        yield warn(
            "pooler",
            "STATESVC_LISTEN_URL is set, but DATABASE_URL leads to the server itself: each"
            " transaction carries time limits for no pooler",
        )
    async for finding in _migrations(dsns, settings, service):
        yield finding


async def _wake_ups(dsns: Dsns, service: PoolerMode) -> Finding:
    is_own = dsns.is_pooled
    try:
        mode = await pooler_mode(dsns.listen) if is_own else service
    except psycopg.OperationalError as error:
        return fail(
            "wake-ups",
            f"STATESVC_LISTEN_URL does not answer ({type(error).__name__}): open the way to it;"
            " meanwhile processes poll",
        )
    fault = listen_fault(mode, is_own=is_own)
    if fault is not None:
        return fail("wake-ups", fault)
    if mode is PoolerMode.DIRECT:
        return ok("wake-ups", "LISTEN has a direct connection")
    variable = "STATESVC_LISTEN_URL" if is_own else "DATABASE_URL"
    return ok("wake-ups", f"{variable} leads through a pooler in session mode, where LISTEN works")


async def _migrations(
    dsns: Dsns, settings: Settings, service: PoolerMode
) -> AsyncIterator[Finding]:
    if settings.database.owner_url is None:
        if fault := owner_fault(service, variable="DATABASE_URL"):
            yield fail("owner", fault)
        return
    try:
        mode = await pooler_mode(dsns.owner)
    except psycopg.OperationalError as error:
        yield warn(
            "owner",
            f"STATESVC_OWNER_URL does not answer ({type(error).__name__}): no migration can run"
            " from here",
        )
        return
    if fault := owner_fault(mode):
        yield fail("owner", fault)
