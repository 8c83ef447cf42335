"""Operator actions in the log, the newest first, without archived months."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "action_list")

# Actions that one page searches.
SCANNED_MAX: Final = 10_000


class ActionPosition(NamedTuple):
    batch_id: int
    ordinal: int


NEWEST_ACTION: Final = ActionPosition(2**63 - 1, 2**31 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAction:
    """An action as its entry says. `details` has its `why`, if one was given."""

    recorded_at: datetime
    actor: str
    verb: str
    target: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFilter:
    """Prefixes: `rollout.` means all verbs about rollouts; empty means any."""

    actor: str = ""
    verb: str = ""
    target: str = ""


async def list_actions(
    connection: AsyncConnection[Any], wanted: ActionFilter, *, before: ActionPosition, limit: int
) -> tuple[list[RecordedAction], ActionPosition | None]:
    """Return a page, and the `before` of the next one (None: this is the last).

    A page may be short, or empty, and have a next one.
    """
    rows = await (
        await connection.execute(
            _SQL["newest"],
            {
                "before_batch": before.batch_id,
                "before_ordinal": before.ordinal,
                "actor": wanted.actor,
                "verb": wanted.verb,
                "target": wanted.target,
                "scanned_max": SCANNED_MAX,
                "found_max": limit,
            },
        )
    ).fetchall()
    found = [row[3:] for row in rows if row[3] is not None]
    listed = [
        RecordedAction(
            recorded_at=recorded_at, actor=actor, verb=verb, target=target, details=details
        )
        for _, _, recorded_at, actor, verb, target, details in found
    ]
    if len(found) == limit:
        return listed, ActionPosition(*found[-1][:2])
    return listed, ActionPosition(*rows[0][1:3]) if rows and rows[0][0] == SCANNED_MAX else None
