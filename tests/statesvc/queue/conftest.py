"""The claim protocol as any client speaks it: plain SQL as the service's role."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import AsyncConnection

LEASE_SECONDS = 30


@dataclass(frozen=True)
class Claimed:
    """A message as a claim returned it."""

    message_id: UUID
    carrier_id: str
    token: UUID
    attempts: int
    retries: int
    stage: str
    rescued_from: str | None
    fallback_for: str | None


@dataclass
class Inbox:
    """A client of the protocol, and a look at what it left behind."""

    connection: AsyncConnection[Any]
    owner_dsn: str
    database: Any

    async def put(
        self, *carrier_ids: str, digests: Sequence[bytes] | None = None, body_bytes: int = 100
    ) -> list[tuple[UUID, bool]]:
        """Put one group, a message for each carrier named. Return (message id, duplicate)."""
        count = len(carrier_ids)
        return await self.rows(
            "SELECT message_id, duplicate FROM statesvc.put(%s::uuid[], %s::text[], %s::bytea[],"
            " %s::bytea[], %s::bytea[], %s::bytea[], array_fill('{}'::jsonb, ARRAY[%s]), %s::int[])"
            " ORDER BY ordinal",
            [uuid4() for _ in range(count)],
            list(carrier_ids),
            list(digests or [uuid4().bytes for _ in range(count)]),
            [b"body"] * count,
            [b"key"] * count,
            [bytes(32)] * count,
            count,
            [body_bytes] * count,
        )

    async def claim(
        self,
        limit: int = 64,
        *,
        worker: str = "w",
        stage: str = "any",
        bytes_max: int = 4 << 20,
        sweep: bool = False,
        lease: float = LEASE_SECONDS,
        rescue_first: bool = True,
        normalizer: str | None = None,
        carriers: Sequence[str] | None = None,
    ) -> list[Claimed]:
        found = await self.rows(
            "SELECT message_id, carrier_id, token, attempts, retries, stage, rescued_from,"
            " fallback_for FROM statesvc.claim(%s, %s, make_interval(secs => %s), %s, %s, %s, %s,"
            " p_normalizer => %s, p_carriers => %s)",
            worker,
            limit,
            lease,
            stage,
            bytes_max,
            sweep,
            rescue_first,
            normalizer,
            None if carriers is None else list(carriers),
        )
        return [Claimed(*row) for row in found]

    async def retry(self, token: UUID, *message_ids: UUID, seconds: float = 5) -> int:
        count = len(message_ids)
        delays = f"array_fill(make_interval(secs => {seconds}), ARRAY[{count}])"
        return await self.count(
            f"SELECT statesvc.retry(%s, %s::uuid[], {delays}, array_fill('Lost'::text,"
            f" ARRAY[{count}]))",
            token,
            list(message_ids),
        )

    async def bury(self, token: UUID, *message_ids: UUID) -> int:
        count = len(message_ids)
        return await self.count(
            f"SELECT statesvc.bury(%s, %s::uuid[], array_fill('unreadable'::text, ARRAY[{count}]),"
            f" array_fill('why'::text, ARRAY[{count}]))",
            token,
            list(message_ids),
        )

    async def extend(self, token: UUID, seconds: float = LEASE_SECONDS) -> int:
        return await self.count(
            "SELECT statesvc.extend(%s, make_interval(secs => %s))", token, seconds
        )

    async def decline(self, token: UUID, *message_ids: UUID) -> int:
        return await self.count("SELECT statesvc.decline(%s, %s::uuid[])", token, list(message_ids))

    async def postpone(self, token: UUID, *message_ids: UUID) -> int:
        return await self.count(
            "SELECT statesvc.postpone(%s, %s::uuid[])", token, list(message_ids)
        )

    async def release(self, token: UUID) -> int:
        return await self.count("SELECT statesvc.release(%s)", token)

    async def hand_over(self, token: UUID, *message_ids: UUID, normalizer: str = "go@1") -> int:
        """Settle as a foreign worker does."""
        results = ",".join(
            f'{{"message_id": "{m}", "normalizer": "{normalizer}", "events": "AAEC"}}'
            for m in message_ids
        )
        return await self.count("SELECT statesvc.settle(%s, %s::jsonb)", token, f"[{results}]")

    async def hold(self, carrier_id: str, *, on: bool = True) -> None:
        await self.connection.execute(
            "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES (%s,"
            " %s, now(), 'test') ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold",
            (carrier_id, on),
        )

    async def roll_out(
        self,
        carrier_id: str,
        candidate: str | None = None,
        percent: int = 0,
        *,
        stable: str | None = None,
        shadow: bool = False,
        fallback_seconds: int = 30,
    ) -> None:
        await self.connection.execute(
            "INSERT INTO statesvc.rollout (carrier_id, stable, candidate, percent, shadow,"
            " fallback_seconds, changed_at, changed_by) VALUES (%s, %s, %s, %s, %s, %s, now(),"
            " 'test') ON CONFLICT (carrier_id) DO UPDATE SET stable = excluded.stable, candidate ="
            " excluded.candidate, percent = excluded.percent, shadow = excluded.shadow,"
            " fallback_seconds = excluded.fallback_seconds",
            (carrier_id, stable, candidate, percent, shadow, fallback_seconds),
        )

    async def share(self, carrier_id: str, percent: int) -> set[UUID]:
        """Return what waits of the candidate's."""
        found = await self.rows(
            "SELECT message_id FROM statesvc.inbox WHERE carrier_id = %s AND"
            " statesvc.in_share(message_id, carrier_id, %s)",
            carrier_id,
            percent,
        )
        return {message_id for (message_id,) in found}

    async def set_quota(
        self, carrier_id: str, *, weight: float = 1, in_flight_max: int | None = None
    ) -> None:
        await self.connection.execute(
            "INSERT INTO statesvc.carrier_quota (carrier_id, weight, in_flight_max, changed_at,"
            " changed_by) VALUES (%s, %s, %s, now(), 'test') ON CONFLICT (carrier_id) DO UPDATE SET"
            " weight = excluded.weight, in_flight_max = excluded.in_flight_max",
            (carrier_id, weight, in_flight_max),
        )

    async def advance(self, seconds: float) -> None:
        await self.database.clock.advance(seconds)

    async def expire(self) -> None:
        await self.advance(LEASE_SECONDS + 1)

    async def attempts(self) -> list[tuple[Any, ...]]:
        return await self.rows(
            "SELECT message_id, attempt, outcome, worker, error FROM statesvc.message_attempt ORDER"
            " BY attempt_id"
        )

    async def dead(self) -> list[tuple[Any, ...]]:
        return await self.rows(
            "SELECT message_id, cause, attempts FROM statesvc.dead_letter ORDER BY dead_letter_id"
        )

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        return await (await self.connection.execute(query.encode(), parameters or None)).fetchall()

    async def count(self, query: str, *parameters: Any) -> int:
        return int(await self.value(query, *parameters))

    async def value(self, query: str, *parameters: Any) -> Any:
        return (await self.rows(query, *parameters))[0][0]

    async def as_owner(self, statement: str) -> None:
        async with await AsyncConnection.connect(self.owner_dsn, autocommit=True) as connection:
            await connection.execute(statement.encode())


@pytest.fixture
async def inbox(database: Any) -> AsyncIterator[Inbox]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield Inbox(connection, database.owner_dsn, database)


@pytest.fixture
async def other(database: Any) -> AsyncIterator[Inbox]:
    """Open a second client of the same inbox."""
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield Inbox(connection, database.owner_dsn, database)
