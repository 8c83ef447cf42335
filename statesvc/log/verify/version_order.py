"""Whether a shipment's versions ascend with the index.

A later version is written by a transaction that saw the earlier one committed, and has the higher batch id. So versions can only stand
in the wrong order where a batch was sealed after one with a higher id, and only the events of such batches are looked at. Batch ids
themselves are given under the lock of the head; that they ascend with the versions is not checked here.
"""

from collections.abc import Iterator
from typing import Any, Final

from psycopg import Connection

from statesvc.database.queries import queries
from statesvc.log.verify.fault import LogFault

_SQL = queries("statesvc.log.verify", "version_order")
_AT_ONCE: Final = 500


def inverted_versions(connection: Connection[Any]) -> Iterator[LogFault]:
    """The versions that stand after the one that follows them. Inside a transaction that sees one snapshot."""
    late: list[Any] = []
    highest = 0
    with connection.cursor("sealed_order", binary=True) as cursor:
        cursor.itersize = 20_000
        for row in cursor.execute(_SQL["sealed_order"]):
            if row[0] < highest:
                late.append(row)
            highest = max(highest, row[0])
    for begin in range(0, len(late), _AT_ONCE):
        names = ("batch_ids", "first_indexes", "recorded_froms", "recorded_tos")
        parameters = dict(zip(names, map(list, zip(*late[begin : begin + _AT_ONCE], strict=True)), strict=True))
        for shipment_id, version, index, next_index in connection.execute(_SQL["late_events"], parameters):
            if next_index < index:
                row_name = f"shipment_id={shipment_id} version={version}"
                yield LogFault("event", row_name, "version", f"is sealed at index {index}, after version {version + 1} at {next_index}")
