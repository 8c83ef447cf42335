"""Checks of the log: privileges, sealing, the head's copy outside, and its key."""

from collections.abc import AsyncIterator
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from events.crypto.sealing import SealError
from statesvc.cli.session import connect
from statesvc.database.dsns import Dsns
from statesvc.database.keyring_store import MasterKeyError
from statesvc.database.kms.kms import KmsError
from statesvc.database.log_guard import TRIGGERS
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.log.checkpoint_store import CheckpointStoreError, checkpoint_store_at
from statesvc.log.signing_keys import SigningKeyError, open_signers, read_keys
from statesvc.log.timestamp_store import stamp_status
from statesvc.log.tombstones import TombstoneError, tombstones_of
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings

_SHOWN_MAX: Final = 5
STAMP_INTERVALS_MAX: Final = 3

_SQL = queries("statesvc.cli.doctor", "log_checks")


async def check_database_roles(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check the roles by the catalogue alone."""
    async for finding in _auditor(connection, settings.database.auditor_role):
        yield finding
    async for finding in _guard(connection):
        yield finding


async def _auditor(connection: AsyncConnection[Any], role: str) -> AsyncIterator[Finding]:
    row = await (await connection.execute(_SQL["auditor"], {"role": role})).fetchone()
    if row is None:
        yield ok(
            "auditor",
            f"there is no role {role}: make one that may log in, and `statesvc migrate` lets it"
            " read the log",
        )
        return
    superuser, owner, reads = row
    if superuser or owner:
        yield fail(
            "auditor",
            f"{role} is {'a superuser' if superuser else 'a member of the role that owns the log'}:"
            " it must only read",
        )
        return
    excess = [
        name async for (name,) in await connection.execute(_SQL["auditor_excess"], {"role": role})
    ]
    if excess:
        shown = ", ".join(excess[:_SHOWN_MAX]) + (", ..." if len(excess) > _SHOWN_MAX else "")
        yield fail(
            "auditor",
            f"{role} has more than it should: {shown}; ask who gave it, then `statesvc migrate`"
            " takes it away",
        )
    elif not reads:
        yield warn("auditor", f"{role} may not read the log yet: run `statesvc migrate`")
    else:
        yield ok("auditor", f"{role} reads the log and no key, and writes nothing")


async def _guard(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    found = dict(
        await (await connection.execute(_SQL["guard"], {"names": list(TRIGGERS)})).fetchall()
    )
    off = sorted(name for name, enabled in found.items() if enabled != "A")
    if off:
        yield fail(
            "log guard",
            f"switched off: {', '.join(off)}: find out who and why, then `statesvc migrate --guard"
            " | psql ...`",
        )
    elif len(found) < len(TRIGGERS):
        yield warn(
            "log guard",
            "the log's tables could be dropped or altered by mistake: event triggers against that"
            " take a superuser, or a provider that lets its master make them: `statesvc migrate"
            " --guard | psql -v ON_ERROR_STOP=1 -1 ...`",
        )
    else:
        yield ok(
            "log guard",
            "event triggers refuse to drop, alter or rewrite the log's tables unannounced",
        )


async def check_sealed_log(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check the newest head and the keys; `statesvc verify` checks the rest."""
    ((size,),) = await (await connection.execute(_SQL["seal_state"])).fetchall()
    if size:
        yield ok(
            "sealed log",
            f"{size:,} entries are covered by its newest checkpoint; `statesvc verify` checks them",
        )
    else:
        yield ok("sealed log", "nothing was sealed yet")
    if settings.checkpoint.stamp_url is not None:
        yield await _stamps(connection, settings.checkpoint.stamp_seconds)
    if settings.checkpoint_file is None and settings.checkpoint.publish is None:
        yield warn(
            "sealed log",
            "STATESVC_SEALER_CHECKPOINT_FILE is not set, nor STATESVC_CHECKPOINT_PUBLISH: after a"
            " restore from an older backup the sealer would sign another history without noticing",
        )
    if settings.checkpoint.publish is not None:
        try:
            await checkpoint_store_at(settings.checkpoint.publish).require_no_overwriting()
        except CheckpointStoreError as error:
            yield fail("sealed log", f"its checkpoints are not published: {error}")
    try:
        open_signers(await read_keys(connection), await open_master_keys(settings, connection))
    except (SealError, SigningKeyError) as error:
        yield fail("sealed log", f"its signing key cannot be used: {error}")
    except (MasterKeyError, KmsError):
        # reported already
        return


async def check_tombstones(settings: Settings) -> Finding:
    """Check whether erasures and revocations survive a restore."""
    try:
        tombstones = tombstones_of(settings)
        count = len(await tombstones.read())
    except (CheckpointStoreError, TombstoneError) as error:
        return fail(
            "tombstones",
            f"what was erased and revoked cannot be read outside the database: {error}",
        )
    if not tombstones.places:
        return warn(
            "tombstones",
            "no place outside the database is configured (STATESVC_CHECKPOINT_PUBLISH,"
            " STATESVC_SEALER_CHECKPOINT_FILE): a restore from a backup brings back the shipments"
            " that were erased and the keys that were revoked since",
        )
    if settings.checkpoint.publish is None and settings.database.database_url is not None:
        return warn(
            "tombstones",
            "erasures and revoked keys are published on this machine alone, next to its checkpoint"
            " file: after a restore `statesvc log fork` repeats only those made where it runs; set"
            " STATESVC_CHECKPOINT_PUBLISH on every machine",
        )
    return ok(
        "tombstones",
        f"{count:,} erasures and revoked keys lie in {', '.join(tombstones.names)}, where a restore"
        " does not undo them",
    )


async def _stamps(connection: AsyncConnection[Any], interval_seconds: float) -> Finding:
    found = await stamp_status(connection)
    if found is None or found.stamped_size == found.size:
        return ok("time stamps", "every checkpoint there is lies below a stamped one, or is it")
    if found.age_seconds is None or found.age_seconds > STAMP_INTERVALS_MAX * interval_seconds:
        since = "never" if found.age_seconds is None else f"{found.age_seconds / 3600:,.1f} h ago"
        return warn(
            "time stamps",
            f"the last stamp came {since}: the sealer's log says what the authority answers"
            " (checkpoint_stamp_failed)",
        )
    return ok(
        "time stamps",
        f"the last one came {found.age_seconds / 60:,.0f} min ago, of the first"
        f" {found.stamped_size:,} entries",
    )


async def check_logins(dsns: Dsns, settings: Settings) -> AsyncIterator[Finding]:
    """Check that each address logs in as its role.

    If all are the same role, `check_log_privileges` reports it.
    """
    if dsns.owner == dsns.service:
        return
    owns = {dsn: await _owns(dsn) for dsn in {dsns.service, dsns.listen, dsns.owner}}
    if owns[dsns.listen] and not owns[dsns.service]:
        yield fail(
            "log",
            "STATESVC_LISTEN_URL logs in as the owner of the tables, and the sealer works through"
            " it: give it the role of DATABASE_URL",
        )
    if settings.database.owner_url is not None and owns[dsns.owner] is False:
        yield fail(
            "owner",
            "STATESVC_OWNER_URL logs in as a role that does not own the tables: no migration can"
            " run with it",
        )


async def _owns(dsn: str) -> bool | None:
    """Return whether its role owns the log. None: it does not answer, or there is no log yet."""
    try:
        async with await connect(dsn) as connection:
            row = await (await connection.execute(_SQL["owned_log"])).fetchone()
    except psycopg.OperationalError:
        return None
    return None if row is None else bool(row[0])


async def check_log_privileges(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    """Check whether the service's role could change the log."""
    row = await (await connection.execute(_SQL["owned_log"])).fetchone()
    if row is None or row[0]:
        yield warn(
            "log",
            "the service logs in as the owner of the tables: only triggers keep the log unchanged,"
            " and their owner can drop them; give DATABASE_URL a role of its own, and"
            " STATESVC_OWNER_URL this one",
        )
        return
    mutable = [name async for (name,) in await connection.execute(_SQL["mutable_log"])]
    if mutable:
        yield fail(
            "log",
            f"the service's role may change {', '.join(mutable)}: run `statesvc migrate`, which"
            " takes that away",
        )
    else:
        yield ok("log", "the service's role can only add to it")
