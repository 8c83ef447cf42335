"""All checks in their order, and those of settings, carriers, disk, keys and queues.

Reads only; never prints a secret.
"""

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from events.carriers import CARRIERS, INSTALLED
from events.parsing.zones import IANA_RELEASE
from statesvc.api.service_status import checks
from statesvc.api.status_facts import read_facts
from statesvc.cli.carrier_authentication import accepted, open_points
from statesvc.cli.doctor.log_checks import (
    check_database_roles,
    check_log_privileges,
    check_logins,
    check_sealed_log,
    check_tombstones,
)
from statesvc.cli.doctor.pooler_checks import check_pooler
from statesvc.cli.doctor.server_checks import check_connections, check_server
from statesvc.cli.doctor.spool_check import check_spool
from statesvc.cli.session import FINDING, connect
from statesvc.database.copy_faults import read_copy_faults
from statesvc.database.embedded import locate
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.kms.kms import KmsError
from statesvc.database.kms.root_key import is_outdated
from statesvc.database.migration_files import MigrationError, compare, read_migrations
from statesvc.database.migrator import read_ledger
from statesvc.database.open_connection import UnsupportedServerError
from statesvc.database.partitions import missing_partitions
from statesvc.database.postgres_programs import NoDataError
from statesvc.database.queries import queries
from statesvc.database.service_connection import encoding_fault
from statesvc.health.finding import Finding, Urgency, fail, ok, warn
from statesvc.health.storable import read_lock_fault
from statesvc.ingress.scheme_words import described
from statesvc.maintenance.upkeep import seconds_in_future
from statesvc.roles.carrier_names import accepted_carriers, unknown_carriers
from statesvc.roles.master_key import key_sources, open_sources
from statesvc.sealer.clock_check import CLOCK_SECONDS_MAX
from statesvc.seams import parts
from statesvc.settings.carrier_settings import WEBHOOK_SECRET_PREFIX
from statesvc.settings.renamed_variables import RENAMES
from statesvc.settings.service_settings import SECTIONS, Settings
from statesvc.settings.variable_names import sentences_on_unknown_variables

CLOCK_SECONDS_OFF_MAX: Final = 1.0

_SQL = queries("statesvc.cli.doctor", "checks")


async def run_checks(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Run every check; where the database is away, those that need none."""
    for finding in (
        *_settings(settings, environment),
        *_carriers(settings),
        *_disk(settings),
        *_proxy(settings, environment),
    ):
        yield finding
    yield await check_tombstones(settings)
    for finding in await check_spool(settings.spool):
        yield finding
    try:
        dsns = locate(settings.database)
    except NoDataError as error:
        yield fail("database", str(error))
        return
    if dsns is None:
        yield warn(
            "database",
            "not running: DATABASE_URL is not set and no `statesvc up` serves"
            f" {settings.database.data_dir.absolute()}",
        )
        return
    try:
        async with await connect(
            dsns.service, direct=not dsns.is_pooled, limits=FINDING
        ) as connection:
            async for finding in _database(connection, settings, is_pooled=dsns.is_pooled):
                yield finding
        async for finding in check_logins(dsns, settings):
            yield finding
        async for finding in check_pooler(dsns, settings):
            yield finding
    except UnsupportedServerError as error:
        yield fail("server", str(error))
    except psycopg.OperationalError as error:
        said = str(error).strip() or type(error).__name__
        yield fail("database", f"does not answer: {said.splitlines()[0]}")


def _proxy(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check that a proxy for all programs of this machine is not expected to hold here."""
    named = next((each for each in ("HTTPS_PROXY", "https_proxy") if environment.get(each)), None)
    if named is not None and settings.notifier.egress_proxy is None:
        yield warn(
            "proxy",
            f"{named} is set, and subscribers are reached without it: set STATESVC_EGRESS_PROXY if"
            " only the proxy leads to them",
        )


def _settings(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    for sentence in RENAMES.deprecated(environment).values():
        yield warn("settings", sentence)
    for sentence in sentences_on_unknown_variables(environment, SECTIONS):
        yield fail("settings", f"{sentence}. Nothing starts until it is removed")
    try:
        kms = key_sources(settings).kms
        yield ok("master key", "set" if kms is None else f"held by the KMS ({kms.name})")
    except (MasterKeyError, KmsError) as error:
        if (
            settings.database.database_url is None
            and settings.keys.master_key is None
            and settings.keys.kms_url is None
        ):
            yield warn("master key", "none yet: `statesvc up` makes one at its first start")
        else:
            yield fail("master key", str(error))
    if settings.keys.bootstrap_key is not None:
        yield warn(
            "bootstrap key",
            "STATESVC_BOOTSTRAP_KEY may do everything: unset it once `statesvc keys create` made"
            " real ones",
        )


def _carriers(settings: Settings) -> Iterator[Finding]:
    unsigned = sorted(
        carrier_id
        for carrier_id in CARRIERS
        if settings.ingress.allows_unsigned(carrier_id) and not settings.authenticates(carrier_id)
    )
    if unsigned:
        yield warn(
            "carriers",
            f"anyone may push as {', '.join(unsigned)}: STATESVC_ALLOW_UNSIGNED_WEBHOOKS lets them"
            " in unsigned",
        )
    signed = sorted(carrier_id for carrier_id in CARRIERS if settings.authenticates(carrier_id))
    for carrier_id in signed:
        carrier = CARRIERS[carrier_id]
        points = open_points(carrier, settings)
        schemes = " or ".join(described(accepted(carrier, settings)))
        words = f"{carrier_id} is proven by {schemes}{_addresses(settings, carrier_id)}"
        yield warn("carriers", f"{words}; {'; '.join(points)}") if points else ok("carriers", words)
    for point, package in INSTALLED.items():
        yield ok("carriers", f"{point} is brought by {package}")
    elsewhere = sorted(accepted_carriers(settings).difference(signed, unsigned))
    if elsewhere:
        yield ok(
            "carriers",
            f"{', '.join(elsewhere)} proven by settings of the running service that this shell"
            " lacks: give it the same to check them",
        )
    closed = len(CARRIERS) - len(signed) - len(unsigned) - len(elsewhere)
    if closed:
        yield ok(
            "carriers",
            f"{closed} have no secret and are refused ({WEBHOOK_SECRET_PREFIX}<CARRIER> lets"
            " one in)",
        )
    for sentence in unknown_carriers(settings):
        yield fail("carriers", sentence)


def _addresses(settings: Settings, carrier_id: str) -> str:
    count = len(settings.webhook_networks.get(carrier_id.upper(), ()))
    return f", from {count} networks alone" if count else ""


def _disk(settings: Settings) -> Iterator[Finding]:
    if settings.database.database_url is not None or not settings.database.data_dir.exists():
        return
    free = shutil.disk_usage(settings.database.data_dir).free
    least = settings.ingress.disk_free_bytes_min
    text = f"{free / 2**30:.1f} GiB free; below {least / 2**30:.1f} GiB webhooks are refused"
    yield (
        fail("disk", text)
        if free < least
        else warn("disk", text)
        if free < 2 * least
        else ok("disk", text)
    )


async def _database(
    connection: AsyncConnection[Any], settings: Settings, *, is_pooled: bool
) -> AsyncIterator[Finding]:
    if fault := encoding_fault(connection):
        yield fail("encoding", fault)
        return
    async for finding in check_server(connection):
        yield finding
    try:
        state = compare(read_migrations(), await read_ledger(connection))
    except MigrationError as error:
        yield fail("migrations", str(error))
        return
    if state.pending:
        yield fail(
            "migrations",
            f"pending: {', '.join(each.label for each in state.pending)}; run `statesvc migrate`",
        )
        return
    yield ok("migrations", "up to date")
    if not is_pooled:
        # a pooler's connections are the pooler's business
        yield await check_connections(connection, settings)
    if (locked := await read_lock_fault(connection)) is not None:
        # what reads the table waits for it
        yield fail("database", locked)
        return
    for part in (
        check_database_roles(connection, settings),
        check_database(connection),
        _keys(connection, settings),
        *(check(connection, settings) for check in parts("doctor")),
        check_sealed_log(connection, settings),
    ):
        async for finding in part:
            yield finding


async def check_database(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    """Run the checks that need no settings of the installation."""
    for part in (
        check_log_privileges(connection),
        _clock(connection),
        _partitions(connection),
        _copy_faults(connection),
        check_zones(connection),
        check_locked(connection),
        check_service(connection),
    ):
        async for finding in part:
            yield finding


async def _clock(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    definition, seconds_off = await _one(connection, "clock_definition")
    body = " ".join(definition.split())
    if "RETURN clock_timestamp()" not in body or seconds_off > CLOCK_SECONDS_OFF_MAX:
        yield fail(
            "clock",
            "statesvc.clock() was redefined: leases, schedules and recorded times are not to be"
            " trusted",
        )
    else:
        yield ok("clock", "is the server's own")
    ahead = await seconds_in_future(connection)
    if ahead > CLOCK_SECONDS_MAX:
        text = (
            f"queues hold times up to {ahead:,.0f} s in the future: the database's clock was ahead"
        )
        yield warn("clock", f"{text}. Workers and notifiers repair them")


async def _partitions(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    missing = await missing_partitions(connection)
    for each in missing:
        yield fail("partitions", str(each))
    if not missing:
        yield ok("partitions", "none is missing")


async def check_zones(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    """Compare the time zones of this command with those of running workers.

    Names the releases that read the log.
    """
    rows = await (await connection.execute(_SQL["zones"])).fetchall()
    running = [zones for zones, _, _, is_running in rows if is_running]
    before = [
        f"{zones} from {first_at:%Y-%m-%d} to {last_at:%Y-%m-%d}"
        for zones, first_at, last_at, is_running in rows
        if not is_running and zones != IANA_RELEASE
    ]
    history = f"; earlier: {', '.join(before)}" if before else ""
    if set(running) - {IANA_RELEASE}:
        yield warn(
            "time zones",
            f"workers read local times by release {', '.join(running)} of the IANA time zones, this"
            f" command by {IANA_RELEASE}: install the same release everywhere{history}",
        )
    else:
        yield ok("time zones", f"release {IANA_RELEASE}, of the package `tzdata` alone{history}")


async def _copy_faults(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    faults = await read_copy_faults(connection)
    for fault in faults:
        yield fail("copied database", fault)
    if not faults:
        yield ok("copied database", "sequences are ahead of their columns, and every trigger fires")


async def _keys(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    (made,) = await _one(connection, "service_keys")
    if not made:
        # loading would make them
        return
    try:
        sources = key_sources(settings)
        await load_keyring(connection, await open_sources(sources, connection))
        if sources.kms is not None and await is_outdated(connection, sources.kms):
            yield warn(
                "master key",
                "the KMS's key was rotated: `statesvc keys rotate-master` has it wrap the root key"
                " anew",
            )
    except MasterKeyError:
        return
    except KmsError as error:
        yield fail("master key", str(error))
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the cipher says, the meaning is the same
        yield fail(
            "master key",
            f"does not open the keys of this database ({type(error).__name__}): it is another"
            " installation's",
        )
    else:
        yield ok("master key", "opens the keys of this database")


async def check_locked(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    postponed = await (await connection.execute(_SQL["postponed"])).fetchone()
    if postponed is not None:
        messages, carriers, seconds, pid, holder, held_seconds = postponed
        text = (
            f"{messages} of {', '.join(carriers)} wait for a shipment that another transaction has"
            f" locked, the oldest for {seconds:,.0f} s"
        )
        hint = (
            f"; perhaps by {holder or 'a session'} (pid {pid}, for {held_seconds:,.0f} s)"
            if pid is not None and held_seconds
            else ""
        )
        yield warn("locked shipments", text + hint)


async def check_service(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    """Run the checks of `statesvc status`. An urgent finding there need not be a fault here."""
    facts = await read_facts(connection)
    for check in checks():
        found = list(check.find(facts))
        for finding in found:
            yield (
                replace(finding, urgency=Urgency.HUMAN)
                if finding.urgency is Urgency.NOW
                else finding
            )
        if not found and not facts.unread:
            yield ok(check.about, check.ok_text)
    for finding in facts.unread:
        yield finding


async def _one(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(_SQL[query])).fetchone()
    if row is None:
        raise psycopg.errors.UndefinedTable
    return tuple(row)
