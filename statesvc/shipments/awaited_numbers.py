"""Lists of awaited numbers: those that wait, and those with elapsed hours.

A number that has been heard of stays until its hours are over, to keep a push cheap; it is left out
here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from events.identity.ids import shipment_id
from statesvc.database.queries import Columns, encoded, queries, texts, uuids
from statesvc.shipments.shipment_list import BEGINNING_OF_TIME, END_OF_TIME

SCAN_MAX: Final = 1_000
COUNT_MAX: Final = 1_000
NUMBERS: Final[Columns] = {"carrier_ids": texts, "numbers": texts}
"""Columns of numbers, each behind its carrier, as statements take them."""
_SQL = queries("statesvc.shipments", "awaited_numbers")


class AwaitedPosition(NamedTuple):
    """A place in the list: after this number."""

    due_at: datetime
    number: str
    carrier_id: str


class UnheardNumber(NamedTuple):
    """A number without a scan.

    `observed_at`: when its hours were found over; None: it still waits.
    """

    carrier_id: str
    number: str
    hours: int
    awaited_at: datetime
    due_at: datetime
    observed_at: datetime | None
    position_at: datetime

    @property
    def position(self) -> AwaitedPosition:
        return AwaitedPosition(self.position_at, self.number, self.carrier_id)


@dataclass(frozen=True, slots=True)
class NeverHeard:
    """Numbers never heard of within a day; `last_seconds`: age of the newest."""

    count: int
    last_seconds: float | None
    carriers: list[str]


async def list_unheard(
    connection: AsyncConnection[Any],
    *,
    carrier_id: str | None,
    never_heard: bool,
    newest_first: bool,
    after: AwaitedPosition | None,
    limit: int,
) -> tuple[list[UnheardNumber], AwaitedPosition | None]:
    """Return a page, and the position of the next (None: this is the last).

    It may be short: it reads at most `SCAN_MAX` numbers.
    """
    begin = AwaitedPosition(END_OF_TIME if newest_first else BEGINNING_OF_TIME, "", "")
    place = after or begin
    asked = {
        "carrier_id": carrier_id,
        "never_heard": never_heard,
        "after_due_at": place.due_at,
        "after_number": place.number,
        "after_carrier_id": place.carrier_id,
        "limit": SCAN_MAX,
    }
    cursor = await connection.execute(
        _SQL["newest_awaited" if newest_first else "oldest_awaited"], asked, binary=True
    )
    rows = [UnheardNumber(*row) for row in await cursor.fetchall()]
    heard = (
        set()
        if never_heard
        else await heard_numbers(connection, [(one.carrier_id, one.number) for one in rows])
    )
    unheard = [one for one in rows if (one.carrier_id, one.number) not in heard]
    if len(unheard) > limit:
        return unheard[:limit], unheard[limit - 1].position
    return unheard, rows[-1].position if len(rows) == SCAN_MAX else None


async def never_heard_of_late(connection: AsyncConnection[Any]) -> NeverHeard:
    """Return how many were observed within a day, as far as `COUNT_MAX`."""
    ((count, last_seconds, carriers),) = await (
        await connection.execute(_SQL["never_heard_of_late"], {"count_max": COUNT_MAX})
    ).fetchall()
    return NeverHeard(count, last_seconds, sorted(carriers))


async def heard_numbers(
    connection: AsyncConnection[Any], numbers: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return those of these numbers, each behind its carrier, of which something was heard."""
    shipments = uuids([shipment_id(carrier_id, number, "") for carrier_id, number in numbers])
    cursor = await connection.execute(
        _SQL["heard"], {**encoded(numbers, NUMBERS), "shipment_ids": shipments}, binary=True
    )
    return set(await cursor.fetchall())
