"""Places, releases and lists legal holds. Each is an operator action in the log, with its reason.

A hold is on a number: on all present and later shipments of the carrier with that number.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.identity.recipes import number_of
from statesvc.database.queries import queries
from statesvc.log.actions import record_action

_SQL = queries("statesvc.bodies", "legal_holds")

# Greater than every hold's id.
NEWEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalHold:
    """A legal hold; it is in effect until `released_at`."""

    legal_hold_id: int
    carrier_id: str
    number: str
    tracking_number: str
    placed_at: datetime
    placed_by: str
    why: str
    released_at: datetime | None
    released_by: str | None
    released_why: str | None


class HoldRefusal(Enum):
    """Reason for which a hold was not placed or released."""

    UNKNOWN_NUMBER = "no event of this carrier ever named this tracking number"
    STANDS_ALREADY = "this number is under a legal hold already"
    NONE_STANDS = "no legal hold is on this number"


async def place_hold(
    connection: AsyncConnection[Any], *, carrier_id: str, tracking_number: str, why: str, actor: str
) -> LegalHold | HoldRefusal:
    """Place a hold.

    An unknown number is refused: it is probably misspelt, and would have no effect.
    """
    number = number_of(carrier_id, tracking_number)
    asked = {
        "carrier_id": carrier_id,
        "number": number,
        "tracking_number": tracking_number.strip(),
        "why": why,
        "actor": actor,
    }
    async with connection.transaction():
        known = await (await connection.execute(_SQL["known_number"], asked)).fetchone()
        if known is None or not known[0]:
            return HoldRefusal.UNKNOWN_NUMBER
        cursor = connection.cursor(row_factory=class_row(LegalHold))
        hold = await (await cursor.execute(_SQL["place"], asked)).fetchone()
        if hold is None:
            return HoldRefusal.STANDS_ALREADY
        await _record(connection, "place_legal_hold", hold, why=why, actor=actor)
    return hold


async def release_hold(
    connection: AsyncConnection[Any], *, carrier_id: str, tracking_number: str, why: str, actor: str
) -> LegalHold | HoldRefusal:
    """Release a hold: from now on retention goes on as for any other number."""
    async with connection.transaction():
        cursor = connection.cursor(row_factory=class_row(LegalHold))
        await cursor.execute(
            _SQL["release"],
            {
                "carrier_id": carrier_id,
                "number": number_of(carrier_id, tracking_number),
                "why": why,
                "actor": actor,
            },
        )
        hold = await cursor.fetchone()
        if hold is None:
            return HoldRefusal.NONE_STANDS
        await _record(connection, "release_legal_hold", hold, why=why, actor=actor)
    return hold


async def list_holds(
    connection: AsyncConnection[Any],
    *,
    carrier_id: str | None = None,
    tracking_number: str | None = None,
    released_too: bool = False,
    before: int = NEWEST,
    limit: int,
) -> tuple[list[LegalHold], int | None]:
    """Return a page, newest first, and the `before` of the next page.

    None: this is the last page.
    """
    number = None if tracking_number is None else number_of(carrier_id or "", tracking_number)
    cursor = connection.cursor(row_factory=class_row(LegalHold))
    await cursor.execute(
        _SQL["list_holds"],
        {
            "carrier_id": carrier_id,
            "number": number,
            "all": released_too,
            "before": before,
            # one more than the page, only to know of the next page
            "limit": limit + 1,
        },
    )
    holds = await cursor.fetchall()
    return holds[:limit], holds[limit - 1].legal_hold_id if len(holds) > limit else None


async def _record(
    connection: AsyncConnection[Any], verb: str, hold: LegalHold, *, why: str, actor: str
) -> None:
    await record_action(
        connection,
        actor=actor,
        verb=verb,
        target=f"shipment {hold.carrier_id} {hold.number}",
        details={"why": why},
    )
