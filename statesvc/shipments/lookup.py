"""Lookup of many numbers in one statement."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from events.identity.recipes import number_of
from events.spelling import sought_forms
from statesvc.database.queries import Columns, encoded, ints, queries, texts
from statesvc.shipments.find import OTHERS_MAX, listed, stored_shipment
from statesvc.shipments.models import ListedShipment
from statesvc.shipments.references import AwaitedNumber
from statesvc.shipments.shipment_list import numbers_in_any_spelling

_SQL = queries("statesvc.shipments", "lookup")
_NUMBERS: Final[Columns] = {"places": ints, "numbers": texts, "carrier_ids": texts}


class PrintedNumber(NamedTuple):
    """A tracking number in any spelling; of any carrier where none is named."""

    tracking_number: str
    carrier_id: str | None

    def compared(self) -> Sequence[str]:
        # a number means another shipment at each carrier, and each compares it in its own way
        if self.carrier_id is None:
            return numbers_in_any_spelling(self.tracking_number)
        carrier_id = self.carrier_id
        return sorted({number_of(carrier_id, form) for form in sought_forms(self.tracking_number)})


async def look_up_numbers(
    connection: AsyncConnection[Any], asked: Sequence[PrintedNumber]
) -> list[list[ListedShipment]]:
    """Return the shipments of each number, the latest first, and numbers without statements."""
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    await cursor.execute(_SQL["lookup"], lookup_parameters(asked))
    found: list[list[ListedShipment]] = [[] for _ in asked]
    for row in await cursor.fetchall():
        place = row.pop("place")
        # awaited or with references only: the shipment does not exist before its first statement
        if row["shipment_id"] is None:
            found[place].append(
                AwaitedNumber(
                    row["carrier_id"], row["tracking_number"], row["recorded_at"], row["terminal"]
                ).listed()
            )
        else:
            found[place].append(listed(stored_shipment(row)))
    return found


def lookup_parameters(asked: Sequence[PrintedNumber]) -> dict[str, Any]:
    rows = [
        (place, number, one.carrier_id)
        for place, one in enumerate(asked)
        for number in one.compared()
    ]
    return {**encoded(rows, _NUMBERS), "each": OTHERS_MAX}
