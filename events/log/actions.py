"""Operator actions: who did what to what and why, as entries of the log."""

from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection

from events.entry import action_document, leaf
from events.log.batch import tick, write_batch
from events.sql.queries import queries

_SQL = queries("events.log", "store")


async def record_action(connection: AsyncConnection[Any], *, actor: str, verb: str, target: str, details: Mapping[str, Any]) -> None:
    """Appends one action, in the transaction that carries it out. `details`: text, integers, booleans; nothing secret or personal."""
    recorded_at, batch_id = await tick(connection)
    entry = leaf(action_document(actor=actor, verb=verb, target=target, details=details, recorded_at=recorded_at))
    await connection.execute(
        _SQL["insert_action"],
        {
            "recorded_at": recorded_at,
            "batch_id": batch_id,
            "actor": actor,
            "verb": verb,
            "target": target,
            "leaf_hash": entry.leaf_hash,
            "canonical": entry.canonical,
        },
    )
    await write_batch(connection, batch_id=batch_id, recorded_at=recorded_at, leaf_hashes=[entry.leaf_hash], writer=actor)
