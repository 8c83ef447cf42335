"""Rearming after a change of rules: every unfinished shipment gets its new due time, a page at a time."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from projections.expectations import next_deadline
from projections.state import ShipmentState
from statesvc.database.arrays import Columns, encoded, ints, timestamps, uuids
from statesvc.database.queries import queries
from statesvc.log.batch_row import LONGEST_TRANSACTION
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.expectation_rules import ALL_CARRIERS, RuleBook, RuleScope, read_rules

PAGE_ROWS: Final = 1_000
_DUE: Final[Columns] = {"shipment_ids": uuids, "versions": ints, "due_ats": timestamps}
_SQL = queries("statesvc.addons.expectations", "rearm")
Connection = AsyncConnection[Any]


class Unfinished(NamedTuple):
    """An unfinished shipment, as its row is."""

    carrier_id: str
    shipment_id: UUID
    version: int
    recorded_at: datetime
    due_at: datetime | None
    state: bytes


async def rearm(connection: Connection) -> bool:
    """Apply one page of the oldest change that is not applied to all; return whether there may be more."""
    async with connection.transaction():
        alone = await (await connection.execute(_SQL["try_alone"])).fetchone()
        if alone != (True,):
            return False
        settle_seconds = LONGEST_TRANSACTION.total_seconds()
        row = await (
            await connection.execute(_SQL["unapplied"], {"settle_seconds": settle_seconds})
        ).fetchone()
        if row is None:
            return False
        carrier_id, service, *after = row
        page = await unfinished(connection, *after, limit=PAGE_ROWS)
        if moved := list(
            _moved(page, RuleScope(carrier_id, service), await read_rules(connection))
        ):
            await connection.execute(_SQL["set_due"], encoded(moved, _DUE))
        last = page[-1] if len(page) == PAGE_ROWS else None
        applied = {
            "recorded_at": last and last.recorded_at,
            "shipment_id": last and last.shipment_id,
        }
        await connection.execute(
            _SQL["applied_to"], {"carrier_id": carrier_id, "service": service, **applied}
        )
        return True


async def unfinished(
    connection: Connection, after_recorded_at: datetime, after_shipment_id: UUID, *, limit: int
) -> list[Unfinished]:
    """Return the next of all, in the order of their last change."""
    asked = {
        "after_recorded_at": after_recorded_at,
        "after_shipment_id": after_shipment_id,
        "limit": limit,
    }
    cursor = await connection.execute(_SQL["unfinished"], asked, binary=True)
    return [Unfinished(*row) for row in await cursor.fetchall()]


def _moved(
    page: Sequence[Unfinished], scope: RuleScope, rules: RuleBook
) -> Iterator[tuple[UUID, int, datetime | None]]:
    """Yield those within the scope that are due at another time by the rules."""
    for one in page:
        if scope.carrier_id in (ALL_CARRIERS, one.carrier_id):
            state = ShipmentState.from_json(decompress_json(one.state))
            if not scope.covers(one.carrier_id, state.service):
                continue
            deadline = next_deadline(
                state, rules.of(one.carrier_id, state.service), recorded_at=one.recorded_at
            )
            due_at = deadline.due_at if deadline else None
            if due_at != one.due_at:
                yield one.shipment_id, one.version, due_at
