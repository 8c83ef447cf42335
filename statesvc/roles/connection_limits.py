"""Limits of connections: how many each role has, and the limits of each.

One process of each role together have at most STATESVC_DATABASE_CONNECTIONS, or what the server
leaves them where that is fewer. Of these the first are direct: a process listens and sends wake-ups
over one, and the sealer leads over another. The rest are shared out to pools.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from types import MappingProxyType
from typing import Final

from statesvc.database.connection_bound import ConnectionBound
from statesvc.database.pool import PoolLimits
from statesvc.database.session_settings import SessionLimits
from statesvc.settings.service_settings import CONNECTIONS_MIN, Settings

API_ACQUIRE_SECONDS: Final = 5.0
# While no connection can be opened, a 503 with Retry-After serves a caller better than waiting.
API_AWAY_SECONDS: Final = 0.5
# The queue for connections holds all calls that so many keys may have under way.
API_WAITING_KEYS: Final = 2
API_STATEMENT_SECONDS: Final = 5.0
API_LOCK_SECONDS: Final = 2.0
API_IDLE_SECONDS: Final = 5.0
# By role. The first connections of each.
DIRECT: Final[Mapping[str, int]] = MappingProxyType(
    {"ingress": 1, "api": 1, "worker": 1, "notifier": 1, "sealer": 2}
)
# By role, of its pool. A worker that waits for a locked shipment needs a second connection.
LEAST: Final[Mapping[str, int]] = MappingProxyType(
    {"ingress": 2, "api": 1, "worker": 2, "notifier": 1, "sealer": 1}
)
BESIDES: Final = "commands, evidence and archiving"
# Roles of each further connection.
_FURTHER: Final = (
    "api",
    "worker",
    BESIDES,
    "ingress",
    "notifier",
    BESIDES,
    "api",
    "ingress",
    BESIDES,
    BESIDES,
)
# Roles of the connections beyond, in turn.
_MORE: Final = ("ingress", "api", "worker", "notifier")
_FILLED_MIN: Final = 2


class TooFewConnectionsError(RuntimeError):
    """A process of each role does not work with the connections that it may have."""


@dataclass(frozen=True, slots=True)
class ConnectionPlan:
    """Plan of connections: how many each pool has, and how many are besides."""

    pools: Mapping[str, int]

    @classmethod
    def of(cls, connections: int) -> "ConnectionPlan":
        """Share out so many; the least that works where that is more."""
        further = max(0, connections - CONNECTIONS_MIN)
        shared = Counter({**LEAST, BESIDES: 1})
        shared.update(islice(chain(_FURTHER, cycle(_MORE)), further))
        return cls(MappingProxyType(dict(shared)))

    @property
    def besides(self) -> int:
        """Connections for commands and checks."""
        return self.pools[BESIDES]

    def wanted(self, roles: Iterable[str]) -> int:
        """Return how many these processes take at most, and what comes and goes beside them."""
        return sum(self.pools[role] + DIRECT[role] for role in roles) + self.besides

    def arithmetic(self, roles: Iterable[str]) -> str:
        """Return the sum, term by term."""
        counts = Counter(roles)
        terms = [
            f"{role} {f'{count} x ' if count > 1 else ''}({self.pools[role]} + {DIRECT[role]}"
            " direct)"
            for role, count in counts.items()
        ]
        return (
            f"{' + '.join(terms)} + {self.besides} for {BESIDES} = {self.wanted(counts.elements())}"
        )

    def resized(self, limits: PoolLimits, roles: Iterable[str]) -> PoolLimits:
        share = sum(self.pools[role] for role in roles)
        return replace(limits, connections_max=share, connections_min=min(share, _FILLED_MIN))


ONE_OF_EACH: Final = tuple(DIRECT)


def plan_for(settings: Settings, bound: ConnectionBound | None) -> ConnectionPlan:
    """Return the connections of each role. `bound`: those that the server leaves; None: a pooler's.

    Raises TooFewConnectionsError if the bound never suffices; if only the present use by others
    is too high, the least plan that works.
    """
    wanted = settings.database.database_connections
    if bound is None:
        return ConnectionPlan.of(wanted)
    # a bound of the server, which no waiting raises; `left` may be low only for now
    if bound.connections < CONNECTIONS_MIN:
        raise TooFewConnectionsError(too_few(bound))
    return ConnectionPlan.of(min(wanted, bound.left))


def too_few(bound: ConnectionBound) -> str:
    """Return the reason why that is too few for a process of each role."""
    least = ConnectionPlan.of(CONNECTIONS_MIN)
    return (
        "too few connections: one process of each role takes at least"
        f" {least.arithmetic(ONE_OF_EACH)}, but {bound.why}: {bound.left} left"
    )


def ingress_limits(settings: Settings) -> PoolLimits:
    """Return the limits of the connections that store webhooks: short statements alone."""
    ingress = settings.ingress
    return PoolLimits(
        connections_max=1,
        connections_min=1,
        acquire_seconds=ingress.acquire_seconds,
        statement_seconds=ingress.statement_seconds,
        # an insert that waits for a lock must fail in time for the carrier's own deadline
        lock_seconds=ingress.statement_seconds,
        idle_in_transaction_seconds=ingress.statement_seconds * 2,
    )


def misrouted_limits(settings: Settings) -> PoolLimits:
    """Return the limits of an `api`'s connection for stray webhooks, opened on demand."""
    return replace(ingress_limits(settings), connections_min=0)


def api_limits(settings: Settings) -> PoolLimits:
    """Return the limits of the API's connections: calls queue, bounded in time and number."""
    return PoolLimits(
        connections_max=1,
        connections_min=1,
        acquire_seconds=API_ACQUIRE_SECONDS,
        away_seconds=API_AWAY_SECONDS,
        waiting_max=API_WAITING_KEYS * settings.api.calls_per_key_max,
        statement_seconds=API_STATEMENT_SECONDS,
        lock_seconds=API_LOCK_SECONDS,
        idle_in_transaction_seconds=API_IDLE_SECONDS,
    )


def reader_limits(settings: Settings) -> PoolLimits:
    """Return the limits of the connection that reads while the database takes no writes:
    there is none until then.
    """
    return replace(api_limits(settings), connections_min=0)


def worker_limits(settings: Settings) -> PoolLimits:
    """Return the limits of worker, notifier and sealer: patient, but all below the lease, so that a
    frozen process blocks no rescue.
    """
    worker = settings.worker
    return PoolLimits(
        connections_max=1,
        connections_min=1,
        acquire_seconds=worker.acquire_seconds,
        statement_seconds=worker.statement_seconds,
        lock_seconds=worker.lock_seconds,
        idle_in_transaction_seconds=worker.idle_in_transaction_seconds,
        transaction_seconds=max(
            worker.statement_seconds, worker.lock_seconds, worker.idle_in_transaction_seconds
        ),
    )


def lead_limits(settings: Settings) -> SessionLimits:
    """Return the limits of the session that leads the sealers: those of a worker's statements; a
    pass may take several.
    """
    worker = settings.worker
    return SessionLimits(
        statement_seconds=worker.statement_seconds,
        lock_seconds=worker.lock_seconds,
        idle_in_transaction_seconds=worker.idle_in_transaction_seconds,
    )
