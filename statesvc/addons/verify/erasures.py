"""Erased shipments against the log's `erase` entries: no key is destroyed without an entry, and
none comes back after one.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from psycopg import Connection

from statesvc.addons.verify.fault import LogFault
from statesvc.database.queries import queries
from statesvc.log.actions import ERASE, SHIPMENT

_SQL: Final = queries("statesvc.addons.verify", "erasures")


def read_erased(connection: Connection[Any]) -> frozenset[str]:
    return frozenset(shipment_id for (shipment_id,) in connection.execute(_SQL["erased"]))


def erase_entries(actions: Iterable[Any]) -> Iterator[str]:
    """Yield the shipments that these entries erase; `actions` are pairs of verb and target."""
    return (target.removeprefix(SHIPMENT) for verb, target in actions if verb == ERASE)


def compare_erasures(
    connection: Connection[Any], erased: Iterable[str], entries: frozenset[str]
) -> Iterator[LogFault]:
    """Compare erasures as of the snapshot; later erasures are no difference."""
    for shipment_id in sorted(set(erased) - entries):
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "sealed_key",
            "was destroyed, and no `erase` entry of the log says so",
        )
    rows = connection.execute(_SQL["not_erased"], {"shipment_ids": sorted(entries)})
    for (shipment_id,) in rows:
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "sealed_key",
            "is back, though the log says that the shipment was erased",
        )
