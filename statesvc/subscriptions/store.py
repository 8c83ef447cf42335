"""Subscriptions in the database. Each change is an operator action in the log, in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID, uuid4

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.keyring import Keyring
from events.log.actions import record_action
from events.sql.queries import queries
from statesvc.subscriptions.secret import Secret, live, open_secrets, rotated, seal_secrets

_SQL = queries("statesvc.subscriptions", "store")

CHANGEABLE: Final = ("url", "carriers", "statuses", "types", "rate_per_second", "coalesce")

State = Literal["active", "paused", "disabled"]
Switch = Literal["pause", "resume", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where to tell, and what: a filter that is None takes everything."""

    url: str
    carriers: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    types: Sequence[str] | None = None
    payload: str = "thin"
    rate_per_second: float | None = None
    """At most so many a second, whatever its receiver would bear."""
    coalesce: bool = True
    """When too much waits, the latest state of each shipment stands for what was before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One subscription as stored, without its secrets."""

    subscription_id: UUID
    created_at: datetime
    created_by: str
    url: str
    carriers: list[str] | None
    statuses: list[str] | None
    types: list[str] | None
    payload: str
    rate_per_second: float | None
    coalesce: bool
    paused_at: datetime | None
    disabled_at: datetime | None
    disabled_why: str | None
    missed_since: datetime | None
    """Nothing was collected, or only failures were had, from then on, and it was not replayed yet."""
    failing_since: datetime | None
    """The first of `failures` attempts that failed since the last one that was delivered."""
    failures: int | None
    last_outcome: str | None
    last_status_code: int | None

    @property
    def state(self) -> State:
        """Disabled weighs more than paused."""
        return "disabled" if self.disabled_at else "paused" if self.paused_at else "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at one notification, as the log has it. `batch_id` and `ordinal` are its place there."""

    webhook_id: str
    shipment_id: UUID
    sequence: int
    number: int
    outcome: str
    status_code: int | None
    duration_ms: int
    started_at: datetime
    recorded_at: datetime
    type: str
    carrier_id: str
    tracking_number: str = field(repr=False)
    batch_id: int
    ordinal: int


async def create(connection: AsyncConnection[Any], keyring: Keyring, wish: Wish, *, actor: str) -> tuple[UUID, Secret]:
    """Makes a subscription; its secret is readable here and never again."""
    subscription_id, secret = uuid4(), Secret.fresh()
    async with connection.transaction():
        await connection.execute(
            _SQL["insert"],
            {
                "subscription_id": subscription_id,
                "created_by": actor,
                "url": wish.url,
                "carriers": _listed(wish.carriers),
                "statuses": _listed(wish.statuses),
                "types": _listed(wish.types),
                "payload": wish.payload,
                "rate_per_second": wish.rate_per_second,
                "coalesce": wish.coalesce,
                "sealed_secrets": seal_secrets(keyring, subscription_id, [secret]),
            },
        )
        await connection.execute(_SQL["keep_throttle"], {"subscription_id": subscription_id})
        await _record(connection, "subscription.create", subscription_id, actor=actor, details={"host": _host(wish.url)})
    return subscription_id, secret


async def find(connection: AsyncConnection[Any], subscription_id: UUID) -> Subscription | None:
    """One subscription; None where there is none, or no more."""
    cursor = connection.cursor(row_factory=class_row(Subscription))
    await cursor.execute(_SQL["find"], {"subscription_id": subscription_id})
    return await cursor.fetchone()


async def page(connection: AsyncConnection[Any], *, after: tuple[datetime, UUID] | None, limit: int) -> list[Subscription]:
    """Subscriptions, the oldest first."""
    created_at, last_id = after or (None, None)
    cursor = connection.cursor(row_factory=class_row(Subscription))
    await cursor.execute(_SQL["page"], {"after_created_at": created_at, "after_id": last_id, "limit": limit})
    return await cursor.fetchall()


async def change(connection: AsyncConnection[Any], subscription_id: UUID, changes: Mapping[str, Any], *, actor: str) -> bool:
    """Sets the columns in `changes` (those of `CHANGEABLE`). False where there is no such subscription."""
    columns = {name: changes.get(name) for name in CHANGEABLE}
    async with connection.transaction():
        cursor = await connection.execute(_SQL["change"], {"subscription_id": subscription_id, "named": list(changes), **columns})
        if cursor.rowcount:
            await connection.execute(_SQL["keep_throttle"], {"subscription_id": subscription_id})
            if "url" in changes:
                await connection.execute(_SQL["begin_anew"], {"subscription_id": subscription_id})
            details = {"changed": " ".join(sorted(changes))}
            await _record(connection, "subscription.change", subscription_id, actor=actor, details=details)
    return cursor.rowcount > 0


async def turn(connection: AsyncConnection[Any], subscription_id: UUID, switch: Switch, *, actor: str) -> bool:
    """Pauses, resumes or deletes. False where there is no such subscription."""
    async with connection.transaction():
        cursor = await connection.execute(_SQL[switch], {"subscription_id": subscription_id})
        if cursor.rowcount:
            if switch == "resume":
                await connection.execute(_SQL["call_again"], {"subscription_id": subscription_id})
            if switch != "pause":
                await connection.execute(_SQL["begin_anew"], {"subscription_id": subscription_id})
            await _record(connection, f"subscription.{switch}", subscription_id, actor=actor, details={})
    return cursor.rowcount > 0


async def rotate(
    connection: AsyncConnection[Any], keyring: Keyring, subscription_id: UUID, *, grace: timedelta, actor: str
) -> Secret | None:
    """A new secret; the former one signs too until the grace is over. None where there is no such subscription."""
    async with connection.transaction():
        row = await (await connection.execute(_SQL["lock_secrets"], {"subscription_id": subscription_id}, binary=True)).fetchone()
        if row is None:
            return None
        sealed, now = row
        secret = Secret.fresh()
        held = rotated(open_secrets(keyring, subscription_id, sealed), secret, now=now, grace=grace)
        await connection.execute(
            _SQL["set_secrets"], {"subscription_id": subscription_id, "sealed_secrets": seal_secrets(keyring, subscription_id, held)}
        )
        details = {"grace_seconds": int(grace.total_seconds())}
        await _record(connection, "subscription.rotate_secret", subscription_id, actor=actor, details=details)
    return secret


async def live_secrets(connection: AsyncConnection[Any], keyring: Keyring, subscription_id: UUID) -> tuple[bytes, ...]:
    """The keys that sign now; none where there is no such subscription."""
    row = await (await connection.execute(_SQL["read_secrets"], {"subscription_id": subscription_id}, binary=True)).fetchone()
    return () if row is None else live(open_secrets(keyring, subscription_id, row[0]), row[1])


async def attempts(
    connection: AsyncConnection[Any], subscription_id: UUID, *, before: tuple[datetime, int, int] | None, limit: int
) -> list[Attempt]:
    """What was tried, the newest first. `before`: recorded_at, batch_id and ordinal of the last one seen."""
    recorded_at, batch_id, ordinal = before or (None, None, None)
    cursor = connection.cursor(row_factory=class_row(Attempt))
    await cursor.execute(
        _SQL["attempts"],
        {
            "subscription_id": subscription_id,
            "before_recorded_at": recorded_at,
            "before_batch_id": batch_id,
            "before_ordinal": ordinal,
            "limit": limit,
        },
    )
    return await cursor.fetchall()


def _listed(words: Sequence[str] | None) -> list[str] | None:
    return None if words is None else sorted(set(words))


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition("?")[0]


async def _record(connection: AsyncConnection[Any], verb: str, subscription_id: UUID, *, actor: str, details: Mapping[str, Any]) -> None:
    await record_action(connection, actor=actor, verb=verb, target=f"subscription {subscription_id}", details=details)
