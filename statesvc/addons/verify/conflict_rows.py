"""The counters of conflicts against the log: each belongs to a logged conflict, and vice versa.

Summed as dedupe keys are. The number of repetitions is counted outside the log and is not verified.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from psycopg import Connection

from events.entry.kinds import EntryName
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.chain import PREFIX, WHOLE, Sums, bounds_of, secret_hash
from statesvc.addons.verify.fault import LogFault
from statesvc.database.queries import queries
from statesvc.log.entry_row import FIRST_VALUE

SQL: Final = queries("statesvc.addons.verify", "conflict_rows")
COUNTERS: Final = "conflict "


class Counted(NamedTuple):
    """Fields that an entry and its counter have in common.

    `recorded_at` in microseconds since 2000.
    """

    carrier_id: str
    event_id: str
    facts_digest: str
    shipment_id: str
    claimed_shipment_id: str
    recorded_at: int


def add_counters(connection: Connection[Any], sums: Sums, secret: bytes) -> None:
    with connection.cursor("conflict_counters", binary=True) as cursor:
        cursor.itersize = 20_000
        for row in cursor.execute(SQL["counters"], bounds_of(WHOLE)):
            _add(sums, secret, Counted(*row), 1)


def take_conflicts(sums: Sums, secret: bytes, rows: Iterable[Any]) -> None:
    """Subtract the counters that these entries should have."""
    for row in rows:
        _add(sums, secret, _of_entry(row), -1)


def compare_counters(
    connection: Connection[Any], part: str, archived: ArchivedMonths
) -> Iterator[LogFault]:
    """Yield the differences of a part, row by row, inside a transaction with one snapshot."""
    bounds = bounds_of(part)
    counters = {Counted(*row) for row in connection.execute(SQL["counters"], bounds, binary=True)}
    conflicts = {Counted(*row) for row in connection.execute(SQL["conflicts"], bounds, binary=True)}
    conflicts |= {
        _of_entry(entry.counted) for entry in archived.entries_of(part, (EntryName.CONFLICT,))
    }
    for counted in sorted(conflicts - counters):
        yield _fault(
            counted,
            "is missing or differs, though the log has the conflict: it was deleted or changed",
        )
    for counted in sorted(counters - conflicts):
        yield _fault(counted, "the log has no such conflict: the row was inserted or changed")


def _of_entry(row: Any) -> Counted:  # noqa: ANN401 - a row
    (
        shipment_id,
        claimed_shipment_id,
        recorded_at,
        _message_id,
        carrier_id,
        event_id,
        facts_digest,
    ) = row[FIRST_VALUE:]
    return Counted(
        carrier_id, event_id, facts_digest, shipment_id, claimed_shipment_id, recorded_at
    )


def _add(sums: Sums, secret: bytes, counted: Counted, sign: int) -> None:
    name = COUNTERS + "\x1f".join(map(str, counted))
    sums[COUNTERS + counted.shipment_id[:PREFIX]] += sign * secret_hash(secret, name.encode())


def _fault(counted: Counted, why: str) -> LogFault:
    return LogFault(
        "conflict_key",
        f"carrier_id={counted.carrier_id} event_id={counted.event_id}",
        "facts_digest",
        why,
    )
