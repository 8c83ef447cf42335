"""Notices in the database, each written in the transaction that it reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from statesvc.database.queries import Sender, queries
from statesvc.log.actions import record_action

_SQL = queries("statesvc.health", "notices")

NEWEST: Final = 2**63 - 1


class NoticeKind(StrEnum):
    """Kind of a notice. Only ever grows."""

    FAILING = "subscription.failing"
    """Every attempt has failed for a day; if that goes on, the subscription will be disabled."""
    DISABLED = "subscription.disabled"
    """The service does not notify this subscriber until it is resumed."""
    RECOVERED = "subscription.recovered"
    """A subscriber that a notice warned of accepts notifications again."""
    REVERTED = "rollout.turned_back"
    """The guard gave a candidate normalizer's share back to the stable one: it failed too often, or
    read too much differently.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice to write. `details`: text and numbers without secrets or personal data."""

    kind: NoticeKind
    target: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNotice:
    """A stored notice. `target` is named as in operator actions.

    `seen_at` null: not marked as seen. `notified_at`: when 0.1 posted it to the operator.
    """

    notice_id: int
    kind: str
    target: str
    created_at: datetime
    details: dict[str, Any]
    seen_at: datetime | None
    seen_by: str | None
    notified_at: datetime | None


async def write_notices(connection: Sender, notices: Sequence[Notice], *, now: datetime) -> None:
    """Write notices inside the caller's transaction; in a pipeline it does not wait."""
    for notice in notices:
        await connection.execute(
            _SQL["write"],
            {
                "kind": notice.kind.value,
                "target": notice.target,
                "now": now,
                "details": Jsonb(dict(notice.details)),
            },
        )


async def list_notices(
    connection: AsyncConnection[Any], *, unseen_only: bool, before: int = NEWEST, limit: int
) -> tuple[list[StoredNotice], int | None]:
    """Return a page, the newest first, and the next page's `before` (None: this is the last)."""
    cursor = connection.cursor(row_factory=class_row(StoredNotice))
    await cursor.execute(
        _SQL["list_notices"], {"unseen_only": unseen_only, "before": before, "limit": limit + 1}
    )
    notices = await cursor.fetchall()
    return notices[:limit], notices[limit - 1].notice_id if len(notices) > limit else None


async def mark_seen(
    connection: AsyncConnection[Any],
    notice_id: int,
    *,
    actor: str,
    details: Mapping[str, str] | None = None,
) -> StoredNotice | None:
    """Mark a notice as seen; the first to see it stays on record. None: there is no such notice."""
    async with connection.transaction():
        cursor = connection.cursor(row_factory=class_row(StoredNotice))
        marked = await connection.execute(
            _SQL["mark_seen"], {"notice_id": notice_id, "actor": actor}
        )
        if marked.rowcount:
            await record_action(
                connection,
                actor=actor,
                verb="notice.seen",
                target=f"notice {notice_id}",
                details=details or {},
            )
        await cursor.execute(_SQL["find"], {"notice_id": notice_id})
        return await cursor.fetchone()
