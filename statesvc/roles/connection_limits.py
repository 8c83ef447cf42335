"""The limits of each role's connections."""

from dataclasses import replace
from typing import Final

from statesvc.database.pool import PoolLimits
from statesvc.settings.service_settings import Settings

API_ACQUIRE_SECONDS: Final = 0.5
"""As for webhooks: with every connection busy for that long, a 503 with Retry-After serves a caller better than a longer queue."""
REPLICA_ACQUIRE_SECONDS: Final = 0.25
API_STATEMENT_SECONDS: Final = 5.0
API_LOCK_SECONDS: Final = 2.0
API_IDLE_SECONDS: Final = 5.0


def ingress_limits(settings: Settings, *, shares: int = 1) -> PoolLimits:
    """Of the connections that store webhooks: nothing that lasts. `shares`: how many parts of a process share its connections."""
    ingress = settings.ingress
    return PoolLimits(
        connections_max=max(1, settings.database.pool_connections // shares),
        acquire_seconds=ingress.acquire_seconds,
        statement_seconds=ingress.statement_seconds,
        lock_seconds=ingress.statement_seconds,
        idle_in_transaction_seconds=ingress.statement_seconds * 2,
    )


def api_limits(settings: Settings) -> PoolLimits:
    """Of the connections that answer the API: the other half."""
    connections = settings.database.pool_connections
    return PoolLimits(
        connections_max=max(1, connections - connections // 2),
        acquire_seconds=API_ACQUIRE_SECONDS,
        statement_seconds=API_STATEMENT_SECONDS,
        lock_seconds=API_LOCK_SECONDS,
        idle_in_transaction_seconds=API_IDLE_SECONDS,
    )


def replica_limits(settings: Settings) -> PoolLimits:
    """Of the connections to a standby: the primary is there for who would have to wait."""
    return replace(api_limits(settings), acquire_seconds=REPLICA_ACQUIRE_SECONDS, connections_min=1)


def sealer_limits(settings: Settings) -> PoolLimits:
    """Of the sealer's pool, which only answers for its health: it works on a direct connection of its own."""
    return replace(worker_limits(settings), connections_min=1, connections_max=min(2, settings.database.pool_connections))


def worker_limits(settings: Settings) -> PoolLimits:
    """Of worker and notifier: patient, but all below the lease, so that a frozen process blocks no rescue."""
    worker = settings.worker
    return PoolLimits(
        connections_max=settings.database.pool_connections,
        acquire_seconds=worker.acquire_seconds,
        statement_seconds=worker.statement_seconds,
        lock_seconds=worker.lock_seconds,
        idle_in_transaction_seconds=worker.idle_in_transaction_seconds,
        transaction_seconds=max(worker.statement_seconds, worker.lock_seconds, worker.idle_in_transaction_seconds),
    )
