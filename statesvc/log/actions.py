"""Operator actions as entries of the log: the actor, the verb, the target and the reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from events.entry.kinds import action_document, leaf
from statesvc.database.queries import Columns, Sender, byteas, encoded, queries, texts, uuids
from statesvc.log.batch_row import BatchStamp, begin_batch, write_batch
from statesvc.log.event_store import extend_streams

_SQL = queries("statesvc.log", "event_store")
# The verb of an erasure; its target is `SHIPMENT` and the shipment's id.
ERASE: Final = "erase"
SHIPMENT: Final = "shipment "
MESSAGE: Final = "message "
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ACTIONS: Final[Columns] = {"actors": texts, "verbs": texts, "targets": texts, "canonicals": byteas}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action. `details` holds text, integers and booleans without secrets or personal data."""

    actor: str
    verb: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)


async def record_action(
    connection: Sender, *, actor: str, verb: str, target: str, details: Mapping[str, Any]
) -> None:
    """Append one action, in the transaction that carries it out; `details` as in `Action`."""
    await record_actions(
        connection, [Action(actor=actor, verb=verb, target=target, details=details)]
    )


async def record_actions(connection: Sender, actions: Sequence[Action]) -> None:
    """Append actions as one batch.

    A transaction writes one batch row, so call this once in each.
    """
    if not actions:
        return
    now = await (await begin_batch(connection)).rows()
    leaf_hashes = await append_actions(connection, actions, now=now)
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=leaf_hashes,
        writer=actions[0].actor,
    )


async def append_actions(
    connection: Sender, actions: Sequence[Action], *, now: BatchStamp, before: int = 0
) -> list[bytes]:
    """Append actions to a batch that has `before` other entries.

    Return their leaf hashes: the caller writes the batch row.
    """
    if not actions:
        return []
    leaves = [
        leaf(
            action_document(
                actor=each.actor,
                verb=each.verb,
                target=each.target,
                details=each.details,
                recorded_at=now.recorded_at,
            ),
            epoch=now.epoch,
        )
        for each in actions
    ]
    rows = [
        (each.actor, each.verb, each.target, entry.canonical)
        for each, entry in zip(actions, leaves, strict=True)
    ]
    await connection.execute(
        _SQL["insert_actions"],
        {
            "recorded_at": now.recorded_at,
            "batch_id": now.batch_id,
            "before": before,
            **encoded(rows, _ACTIONS),
        },
    )
    await _extend_streams(connection, [each.target for each in actions], now)
    return [entry.leaf_hash for entry in leaves]


async def _extend_streams(connection: Sender, targets: Sequence[str], now: BatchStamp) -> None:
    """Extend the streams of the shipments that these are, and of those that
    messages among them name.
    """
    shipments, messages = _ids(targets, SHIPMENT), _ids(targets, MESSAGE)
    if messages:
        cursor = await connection.execute(
            _SQL["shipments_of_messages"], {"message_ids": uuids(messages)}, binary=True
        )
        shipments += [shipment_id for (shipment_id,) in await cursor.fetchall()]
    await extend_streams(connection, shipments, now.recorded_at)


def _ids(targets: Sequence[str], prefix: str) -> list[UUID]:
    """Parse the ids behind a prefix; a number may follow instead, or an operator's own words."""
    named = (target.removeprefix(prefix) for target in targets if target.startswith(prefix))
    return [UUID(each) for each in named if _ID.fullmatch(each)]


_LISTED = queries("statesvc.log", "actions")

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


async def read_actions(
    connection: AsyncConnection[Any], wanted: ActionFilter, *, before: ActionPosition, limit: int
) -> tuple[list[RecordedAction], ActionPosition | None]:
    """Return a page, and the `before` of the next one (None: this is the last).

    A page may be short, or empty, and have a next one.
    """
    rows = await (
        await connection.execute(
            _LISTED["newest"],
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
