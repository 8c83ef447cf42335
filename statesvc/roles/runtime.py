"""Dependencies of every role at run time: telemetry, the database, the keyring, wake-ups,
readiness. Closed in the reverse order.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
import structlog
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.parsing.zones import IANA_RELEASE
from statesvc import __version__
from statesvc.background.waiting import set_within
from statesvc.database.connection_bound import read_connection_bound
from statesvc.database.copy_faults import require_no_copy_faults
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import locate
from statesvc.database.keyring_store import load_keyring
from statesvc.database.kms.kms import KmsError
from statesvc.database.partitions import require_partitions
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.database.service_connection import CONNECT_TIMEOUT_SECONDS
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.health.heartbeat import Heartbeat, Incarnation
from statesvc.http.health import Readiness, shipped_migrations
from statesvc.http.keys.kept_keys import KeptKeys
from statesvc.roles.connection_limits import ConnectionPlan, plan_for
from statesvc.roles.master_key import KeySources, key_sources, open_sources
from statesvc.roles.metrics_address import RoleMetrics, serving_metrics
from statesvc.roles.pooler_faults import require_usable_pooler
from statesvc.roles.refusing_server import refusing
from statesvc.roles.shutdown import StopSignals
from statesvc.roles.start_cache import FILE, StartCache
from statesvc.roles.watchdog import watchdog_pings
from statesvc.seams import active_addons
from statesvc.settings.service_settings import DatabaseSettings, Settings
from statesvc.spool.drainer import ServerClock
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry, loop_lag
from statesvc.telemetry.minute_log import Refusals
from statesvc.telemetry.objective_minutes import objective_minutes
from statesvc.telemetry.tracing import build_provider, metric_exporter, resource_of

Role = Literal["ingress", "api", "worker", "notifier", "sealer"]

RETRY_SECONDS: Final = 1.0
# Name of the file, in the folder of wake-ups, to which the supervisor writes which children died.
DEATHS: Final = "deaths"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A role and its addresses. `port` 0: a free port. `socket`: shared by `ingress` and `api`.

    `wakeups`: a folder over which the roles of this machine wake each other at once.
    `busy_niceness`: how far worker and notifier yield when busy. `sealer_port`: a notifier is
    the sealer too, and answers for its health there.
    """

    role: Role
    host: str
    port: int
    settings: Settings
    socket: Path | None = None
    wakeups: Path | None = None
    busy_niceness: int = 0
    sealer_port: int | None = None
    control: Path | None = None
    """Unix socket where a supervisor asks for the metrics, and whether this process lives; None:
    the metrics have an address.
    """
    start: str = field(default_factory=lambda: secrets.token_hex(4))
    """Distinguishes this start from any other: hosts and process numbers come again (every
    container is process 1).
    """

    @property
    def ports(self) -> dict[Role, int]:
        """The roles of this process, and where each listens."""
        return (
            {self.role: self.port}
            if self.sealer_port is None
            else {self.role: self.port, "sealer": self.sealer_port}
        )

    @property
    def name(self) -> str:
        """Names this process among those of `statesvc up`."""
        return "+".join(self.ports)

    @property
    def worker_id(self) -> str:
        """Names this process in leases, batches and transitions."""
        return self._id(self.role)

    @property
    def incarnations(self) -> list[Incarnation]:
        """Rows of this start in the list of workers, one a role."""
        return [
            Incarnation(
                worker_id=self._id(role),
                role=role,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                normalizers=_normalizers() if role == "worker" else [],
                zones=IANA_RELEASE if role == "worker" else None,
                addons=list(active_addons()),
            )
            for role in self.ports
        ]

    def _id(self, role: Role) -> str:
        return f"{socket.gethostname()}-{role}-{os.getpid()}-{self.start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything open and running; `keyring` proves that the database answered once, or `cache`
    did.
    """

    signals: StopSignals
    telemetry: Telemetry
    metrics: RoleMetrics
    refusals: Refusals
    dsns: Dsns
    plan: ConnectionPlan
    pool: Pool
    keyring: Keyring
    cache: StartCache | None
    waker: Waker
    heartbeat: Heartbeat
    listener: Listener
    readiness: Readiness

    @property
    def helpers(self) -> list[asyncio.Task[None]]:
        """The tasks that a role depends on."""
        return [task for task in (self.waker.task, self.listener.task) if task is not None]


class StoppedDatabaseError(RuntimeError):
    """DATABASE_URL is not set, and the embedded server does not run."""

    def __init__(self, data_dir: str) -> None:
        super().__init__(
            f"no database: DATABASE_URL is not set, and no embedded server runs on {data_dir}"
            " (`statesvc up` starts one)"
        )


class StoppedEarlyError(Exception):
    """Asked to stop before the database answered: no work was begun."""


@asynccontextmanager
async def open_runtime(
    launch: Launch, limits: PoolLimits, *, channels: Sequence[str], is_spooled: bool = False
) -> AsyncIterator[Runtime]:
    """Open for the time of the block; the listener hears these channels, and may hear none.

    `is_spooled`: it opens without the database, too, with the keys of its last start.

    The pool has one connection until wake-ups have theirs: where connections are few, wake-ups
    come first.
    """
    signals = StopSignals()
    signals.listen()
    settings = launch.settings
    dsns = require_database(settings.database)
    # before anything is opened: a key that cannot be read is the operator's error, and needs no
    # database
    sources = key_sources(settings)
    cache = start_cache(settings, sources) if is_spooled else None
    resource = resource_of(launch.role, launch.worker_id)
    tracing = build_provider(resource)
    tracer = tracing.get_tracer("statesvc") if tracing is not None else None
    telemetry = Telemetry(resource=resource, tracer=tracer, exporter=metric_exporter())
    try:
        async with (
            watchdog_pings(),
            serving_metrics(
                settings.http, telemetry, role=launch.name, port=launch.port, control=launch.control
            ) as metrics,
            pool_of(launch, dsns, name=f"statesvc {launch.role}", limits=limits) as pool,
        ):
            keyring, plan = await _opened(launch, pool, dsns, sources, signals=signals, cache=cache)
            listener = Listener(
                dsns.listen,
                channels,
                folder=launch.wakeups,
                first_within_seconds=settings.worker.window_seconds,
            )
            waker = Waker(listener, folder=launch.wakeups)
            await waker.start()
            await listener.start()
            if channels:
                telemetry.observe(gauges.LISTENER_UP, lambda: [(float(listener.is_up), {})])
                # its connection first: where the server has few left, a role without wake-ups is
                # worse than a small pool
                await listener.wait_up(CONNECT_TIMEOUT_SECONDS)
            share = plan.resized(limits, launch.ports)
            await pool.resize(share.connections_min, share.connections_max)
            lag = loop_lag(telemetry)
            lag.start()
            heartbeat = Heartbeat(
                pool,
                launch.incarnations,
                stopping=signals.stopping,
                deaths=None if launch.wakeups is None else launch.wakeups / DEATHS,
            )
            await heartbeat.start()
            minutes = objective_minutes(pool, telemetry.objectives)
            minutes.start()
            try:
                yield Runtime(
                    signals=signals,
                    telemetry=telemetry,
                    metrics=metrics,
                    refusals=Refusals(telemetry),
                    dsns=dsns,
                    plan=plan,
                    pool=pool,
                    keyring=keyring,
                    cache=cache,
                    waker=waker,
                    heartbeat=heartbeat,
                    listener=listener,
                    readiness=Readiness(pool, migrations=shipped_migrations()),
                )
            finally:
                # first: it says that this process has ended, over the pool that is still open
                await heartbeat.stop()
                await minutes.close()
                await lag.close()
                # after all that may wake somebody, and before the listener, over whose connection
                # it sends
                await waker.stop()
                await listener.stop()
    finally:
        telemetry.close()
        if tracing is not None:
            # it sends what is left, and would block the loop for as long as the collector does not
            # answer
            await asyncio.to_thread(tracing.shutdown)


def _normalizers() -> list[str]:
    return [
        f"{carrier_id}/{version}"
        for carrier_id in CARRIERS
        for version in CARRIERS.versions(carrier_id)
    ]


def require_database(settings: DatabaseSettings) -> Dsns:
    """Return DATABASE_URL, or the embedded server that `statesvc up` keeps running.

    Raises NoDataError and StoppedDatabaseError.
    """
    dsns = locate(settings)
    if dsns is None:
        raise StoppedDatabaseError(str(settings.data_dir.absolute()))
    return dsns


@asynccontextmanager
async def pool_of(
    launch: Launch, dsns: Dsns, *, name: str, limits: PoolLimits, writes: bool = True
) -> AsyncIterator[Pool]:
    """Open a pool. `writes=False` to read from a standby."""
    pool = make_pool(
        dsns.service,
        name=name,
        limits=limits,
        prepared_statements=launch.settings.database.prepared_statements,
        direct=not dsns.is_pooled,
        writes=writes,
    )
    await pool.open()
    try:
        yield pool
    finally:
        await pool.close()


async def _opened(
    launch: Launch,
    pool: Pool,
    dsns: Dsns,
    sources: KeySources,
    *,
    signals: StopSignals,
    cache: StartCache | None,
) -> tuple[Keyring, ConnectionPlan]:
    """Wait for the database, its schema and the KMS as long as it takes, unless the cache has keys.

    Raises KmsError, CopyFaultError, MissingPartitionError, PoolerSettingError and
    TooFewConnectionsError where waiting does not help.
    """
    settings, is_refusing = launch.settings, False
    async with AsyncExitStack() as stack:
        while not signals.stopping.is_set():
            try:
                # only behind an address of the operator's can there be a pooler
                if settings.database.database_url is not None:
                    await require_usable_pooler(dsns, settings)
                async with pool.connection() as connection:
                    # first: a copied or incomplete database must not get a keyring
                    await require_sound(connection)
                    room = None if dsns.is_pooled else await read_connection_bound(connection)
                    master = await open_sources(sources, connection, make=True)
                    return await load_keyring(connection, master), plan_for(settings, room)
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction):
                log.warning(
                    "schema_missing", why="run statesvc migrate", delay_seconds=RETRY_SECONDS
                )
            except KmsError as error:
                if not error.transient:
                    raise
                log.warning("kms_unavailable", why=str(error), delay_seconds=RETRY_SECONDS)
            except psycopg.OperationalError as error:
                log.warning("database_unavailable", exc_info=error, delay_seconds=RETRY_SECONDS)
                if cache is not None and (keyring := await cache.open()) is not None:
                    return keyring, plan_for(settings, None)
                if cache is not None and launch.socket is None and not is_refusing:
                    is_refusing = True
                    server = refusing(launch.host, launch.port, cache.why_missing, pool)
                    await stack.enter_async_context(server)
            await set_within(signals.stopping, RETRY_SECONDS)
    raise StoppedEarlyError


async def require_sound(connection: AsyncConnection[Any]) -> None:
    """Check that the database has partitions and is no faulty copy.

    Raises MissingPartitionError and CopyFaultError.
    """
    await require_partitions(connection)
    await require_no_copy_faults(connection)


def start_cache(settings: Settings, sources: KeySources) -> StartCache:
    return StartCache(settings.database.data_dir / FILE, sources, KeptKeys(), ServerClock())
