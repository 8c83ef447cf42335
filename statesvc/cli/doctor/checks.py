"""What doctor looks at, one finding after the other. Reads only; never prints a secret."""

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.cli.doctor.body_archive_checks import examine_archive
from statesvc.cli.doctor.database_role_checks import examine_roles
from statesvc.cli.doctor.finding import Finding, bad, good, warning
from statesvc.cli.doctor.log_archive_checks import examine_log_archive
from statesvc.cli.doctor.pooler_checks import pooling
from statesvc.cli.doctor.sealed_log_checks import examine_log
from statesvc.cli.doctor.server_checks import examine_server
from statesvc.cli.session import connect
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import attach
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.kms.kms import KmsError
from statesvc.database.kms.root_key import is_outdated
from statesvc.database.migration_files import MigrationError, compare, read_migrations
from statesvc.database.migrator import read_ledger
from statesvc.database.queries import queries
from statesvc.roles.master_key import key_sources, open_sources
from statesvc.settings.carrier_settings import WEBHOOK_SECRET_PREFIX
from statesvc.settings.known_settings import unknown_variables
from statesvc.settings.service_settings import Settings

HORIZON_DAYS_MIN: Final = 7
BOOTSTRAP_CHARS_MIN: Final = 24
CLOCK_SECONDS_OFF_MAX: Final = 1.0

_SQL = queries("statesvc.cli.doctor", "checks")


async def examine(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Everything that can be looked at; where the database is away, what can be said without it."""
    for finding in (*_settings(settings, environment), *_carriers(settings), *_disk(settings)):
        yield finding
    dsns = Dsns.from_settings(settings.database) or attach(settings.database.data_dir)
    if dsns is None:
        yield warning(
            "database", f"not running: DATABASE_URL is not set and no `statesvc up` serves {settings.database.data_dir.absolute()}"
        )
        return
    try:
        async with await connect(dsns.service) as connection:
            async for finding in _database(connection, settings):
                yield finding
        async for finding in pooling(dsns, settings):
            yield finding
    except psycopg.OperationalError as error:
        yield bad("database", f"does not answer: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}")


def _settings(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    for name in unknown_variables(environment):
        if name not in {"STATESVC_DEMO_KEY", "STATESVC_SUPERVISED", "STATESVC_CORPUS"}:
            yield warning("settings", f"{name} is no setting: misspelt? `statesvc doctor --settings` lists them")
    try:
        kms = key_sources(settings).kms
        yield good("master key", "set" if kms is None else f"held by the KMS ({kms.name})")
    except (MasterKeyError, KmsError) as error:
        if settings.database.database_url is None and settings.keys.master_key is None and settings.keys.kms_url is None:
            yield warning("master key", "none yet: `statesvc up` makes one at its first start")
        else:
            yield bad("master key", str(error))
    bootstrap = settings.keys.bootstrap_key
    if bootstrap is not None:
        short = len(bootstrap.get_secret_value()) < BOOTSTRAP_CHARS_MIN
        if short:
            yield bad("bootstrap key", f"STATESVC_BOOTSTRAP_KEY is shorter than {BOOTSTRAP_CHARS_MIN} characters")
        else:
            yield warning("bootstrap key", "STATESVC_BOOTSTRAP_KEY may do everything: unset it once `statesvc keys create` made real ones")


def _carriers(settings: Settings) -> Iterator[Finding]:
    unsigned = sorted(
        carrier_id for carrier_id in CARRIERS if settings.ingress.allows_unsigned(carrier_id) and not settings.authenticates(carrier_id)
    )
    if unsigned:
        yield warning("carriers", f"anybody may push as {', '.join(unsigned)}: STATESVC_ALLOW_UNSIGNED_WEBHOOKS lets them in unsigned")
    signed = sorted(carrier_id for carrier_id in CARRIERS if settings.authenticates(carrier_id))
    if signed:
        yield good("carriers", f"secrets are set for {', '.join(signed)}")
    closed = len(CARRIERS) - len(signed) - len(unsigned)
    if closed:
        yield good("carriers", f"{closed} have no secret and are refused ({WEBHOOK_SECRET_PREFIX}<CARRIER> lets one in)")
    known = {carrier_id.upper() for carrier_id in CARRIERS}
    for name in sorted({*settings.webhook_secrets_by_carrier, *settings.webhook_networks, *settings.webhook_key_sets} - known):
        yield warning("carriers", f"{WEBHOOK_SECRET_PREFIX}{name} is for no carrier that is known")


def _disk(settings: Settings) -> Iterator[Finding]:
    if settings.database.database_url is not None or not settings.database.data_dir.exists():
        return
    free = shutil.disk_usage(settings.database.data_dir).free
    least = settings.ingress.disk_free_bytes_min
    text = f"{free / 2**30:.1f} GiB free; below {least / 2**30:.1f} GiB webhooks are refused"
    yield bad("disk", text) if free < least else warning("disk", text) if free < 2 * least else good("disk", text)


async def _database(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    async for finding in examine_server(connection):
        yield finding
    try:
        standing = compare(read_migrations(), await read_ledger(connection))
    except MigrationError as error:
        yield bad("migrations", str(error))
        return
    if standing.pending:
        yield bad("migrations", f"pending: {', '.join(each.label for each in standing.pending)}; run `statesvc migrate`")
        return
    yield good("migrations", "up to date")
    for part in (
        _ownership(connection),
        examine_roles(connection, settings),
        _clock(connection),
        _partitions(connection),
        _keys(connection, settings),
        _waiting(connection),
        examine_archive(connection, settings),
        examine_log_archive(connection, settings),
        examine_log(connection, settings),
    ):
        async for finding in part:
            yield finding


async def _ownership(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    (owned,) = await _one(connection, "owned_log")
    if owned:
        yield warning(
            "log",
            "the service logs in as the owner of the tables: only triggers keep the log unchanged, and their owner can drop them; "
            "give DATABASE_URL a role of its own, and STATESVC_OWNER_URL this one",
        )
        return
    mutable = [name async for (name,) in await connection.execute(_SQL["mutable_log"])]
    if mutable:
        yield bad("log", f"the service's role may change {', '.join(mutable)}: run `statesvc migrate`, which takes that away")
    else:
        yield good("log", "the service's role can only add to it")


async def _clock(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    definition, seconds_off = await _one(connection, "clock_definition")
    body = " ".join(definition.split())
    if "RETURN clock_timestamp()" not in body or seconds_off > CLOCK_SECONDS_OFF_MAX:
        yield bad("clock", "statesvc.clock() was redefined: leases, schedules and recorded times are not to be trusted")
    else:
        yield good("clock", "is the server's own")


async def _partitions(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    table, days = await _one(connection, "partition_horizon")
    text = f"made for the next {days:.0f} days (nearest end: {table})"
    if days < HORIZON_DAYS_MIN and table != "body":
        yield bad("partitions", f"{text}: a worker makes them ahead, is one running? Without them every append fails")
    elif days < 1:
        yield bad("partitions", f"{text}: a worker makes them ahead, is one running? Without them webhooks are refused")
    else:
        yield good("partitions", text)


async def _keys(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    (made,) = await _one(connection, "service_keys")
    if not made:
        # loading would make them
        return
    try:
        sources = key_sources(settings)
        await load_keyring(connection, await open_sources(sources, connection))
        if sources.kms is not None and await is_outdated(connection, sources.kms):
            yield warning("master key", "the KMS's key was rotated: `statesvc keys rotate-master` has it wrap the root key anew")
    except MasterKeyError:
        return
    except KmsError as error:
        yield bad("master key", str(error))
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the cipher says, the meaning is the same
        yield bad("master key", f"does not open the keys of this database ({type(error).__name__}): it is another installation's")
    else:
        yield good("master key", "opens the keys of this database")


async def _waiting(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    dead_letters, held = await _one(connection, "waiting")
    if held:
        yield warning("kill switch", f"on for {', '.join('all' if each == '*' else each for each in held)}: `statesvc rollout release`")
    if dead_letters:
        yield warning("dead letters", f"{dead_letters} wait for a human: `statesvc dead-letters list`")
    else:
        yield good("dead letters", "none")


async def _one(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(_SQL[query])).fetchone()
    if row is None:
        raise psycopg.errors.UndefinedTable
    return tuple(row)
