"""A reading of the database for its gauges and for the service's status."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.health.reconciler import PromiseStatus, read_promises
from statesvc.health.running_processes import Deaths, RunningProcess, read_deaths, read_processes
from statesvc.health.status_parts import StatusParts

# Subscriptions that are shown by name: those with the longest backlog.
SUBSCRIPTIONS_MAX: Final = 20
PROCESSES: Final = "processes"
UNSEALED_SECONDS_MAX: Final = 60.0
_COUNT_MAX: Final = 100_000
_WAITING_MAX: Final = 10_000

_SQL = queries("statesvc.health", "database_sample")
T = TypeVar("T")


class SubscriptionGauges(NamedTuple):
    subscription_id: str
    waiting: int
    oldest_ready_seconds: float
    limit: int
    in_flight: int
    open: int


class NotifyQueue(NamedTuple):
    """The server's NOTIFY queue: how full it is, and the session with the oldest transaction that
    may be seen; `pid` None: none is.
    """

    share: float
    pid: int | None
    user: str | None
    database: str | None
    application: str | None
    state: str | None
    seconds: float | None


class Sample(NamedTuple):
    oldest_unsealed_seconds: float
    oldest_transaction_seconds: float
    size_bytes: int
    wal_bytes: int | None
    partition_horizon_seconds: float | None
    dead_letters: list[tuple[str, str, int]]
    last_pushes: list[tuple[str, float]]
    subscriptions: list[SubscriptionGauges]
    failing: tuple[int, int]
    processes: list[tuple[str, int]]
    promises: list[PromiseStatus]
    running: list[RunningProcess]
    notify_queue: NotifyQueue
    deaths: list[Deaths]


async def read_sample(
    connection: AsyncConnection[Any], answer: StatusParts | None = None
) -> Sample:
    """Read all of it.

    `answer`: parts that can't be read are empty, and named there; None: raises psycopg.Error.
    """

    async def part(name: str, read: Callable[[], Awaitable[T]], otherwise: T) -> T:
        return await (read() if answer is None else answer.part(name, read, otherwise=otherwise))

    async def rows(name: str, about: str, otherwise: list[Any], **parameters: int) -> list[Any]:
        async def read() -> list[Any]:
            return await (await connection.execute(_SQL[name], parameters)).fetchall()

        return await part(about, read, otherwise)

    ((unsealed, transaction, size, wal),) = await rows("gauges", "database", [(0.0, 0.0, 0, None)])
    (horizon,) = await rows("partition_horizon", "partitions", [(None,)])
    (failing,) = await rows("failing", "subscriptions", [(0, 0)])
    return Sample(
        unsealed,
        transaction,
        size,
        wal,
        horizon[0],
        await rows("dead_letters", "dead letters", [], count_max=_COUNT_MAX),
        await rows("last_pushes", "last pushes", []),
        [
            SubscriptionGauges(*row)
            for row in await rows(
                "subscriptions",
                "subscriptions",
                [],
                count_max=_WAITING_MAX,
                limit=SUBSCRIPTIONS_MAX,
            )
        ],
        failing,
        await rows("processes", PROCESSES, []),
        await part("promises", lambda: read_promises(connection), []),
        await part(PROCESSES, lambda: read_processes(connection), []),
        NotifyQueue(*(await rows("notify_queue", "NOTIFY queue", [(0.0, *(6 * [None]))]))[0]),
        await part(PROCESSES, lambda: read_deaths(connection), []),
    )
