"""Parcels of several shipments, and their changes in the log (docs/decisions/0032-parcels.md)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry.assemble import StreamHead
from events.entry.kinds import NO_PREVIOUS
from events.identity.ids import shipment_id
from projections.parcel import ParcelSource, SourceChange, SourceFilter, notified_changes
from statesvc.database.queries import Columns, Pending, Sender, encoded, queries, send, uuids
from statesvc.files.archive_errors import ArchivedHistoryError
from statesvc.log.event_store import ReferencedStream, make_streams

_SQL = queries("statesvc.log", "parcel_log")
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LINKS: Final[Columns] = {"shipment_ids": uuids, "parcel_ids": uuids}


@dataclass(slots=True)
class ParcelLog:
    """The shipments of one parcel, and their changes of status in the order of the log."""

    sources: dict[UUID, ParcelSource] = field(default_factory=dict)
    logged: list[SourceChange] = field(default_factory=list)

    @property
    def has_several_sources(self) -> bool:
        """True if it is pushed under more than one carrier and number."""
        return len({(source.carrier_id, source.number) for source in self.sources.values()}) > 1

    def notified(
        self, asked: SourceFilter, changes: Iterable[SourceChange] = ()
    ) -> set[tuple[UUID, int]]:
        """Return the changes that a `parcels: once` subscriber with these sources has had.

        `changes` follow in the log. Shipment and sequence of each.
        """
        of_asked = (
            change for change in chain(self.logged, changes) if asked.lets_through(change.source)
        )
        return {
            (change.source.shipment_id, change.sequence) for change in notified_changes(of_asked)
        }


async def link_streams(connection: Sender, links: Mapping[UUID, UUID]) -> None:
    """Record the parcels of shipments that were of none; their streams, and those of
    the parcels, are locked.
    """
    await connection.execute(_SQL["link_streams"], encoded(links.items(), _LINKS))


async def link_number(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    carrier_id: str,
    number: str,
    stated: tuple[str, str] | None,
) -> None:
    """Link the shipments of a number to the parcel of another carrier and number; None: unlink.

    In the caller's transaction, before its other locks. A number without statements gets an
    empty stream.
    """
    own = shipment_id(carrier_id, number, "")
    named = {"carrier_id": carrier_id, "number": number, "shipment_id": own}
    await connection.execute(_SQL["await_number"], named)
    locked = await (await connection.execute(_SQL["lock_number"], named, binary=True)).fetchall()
    parcel_id = None
    if stated is not None:
        asked = {"parcel_id": shipment_id(stated[0], stated[1], "")}
        row = await (await connection.execute(_SQL["parcel_of"], asked, binary=True)).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        parcel_id, now = row
        if not locked:
            key = SealingKey.fresh()
            head = StreamHead(0, NO_PREVIOUS, _NEVER, _NEVER, key, parcel_id=parcel_id)
            await make_streams(
                connection,
                [
                    (
                        own,
                        ReferencedStream(carrier_id, number, "", now),
                        head,
                        keyring.seal_shipment_key(key, own),
                    )
                ],
            )
    await connection.execute(_SQL["link_number"], {**named, "parcel_id": parcel_id})


async def parcels_of(connection: Sender, shipment_ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """Return the parcels of those shipments that share a parcel with others."""
    rows = await connection.execute(
        _SQL["parcels_of"], {"shipment_ids": uuids(list(shipment_ids))}, binary=True
    )
    return dict(await rows.fetchall())


async def read_parcels(
    connection: Sender, parcel_ids: Collection[UUID]
) -> Pending[dict[UUID, ParcelLog]]:
    """Read the log of these parcels. Raises ArchivedHistoryError when its rows are read."""
    return await send(
        connection, _SQL["parcel_changes"], {"parcel_ids": uuids(list(parcel_ids))}, _whole_parcels
    )


async def read_present_parcels(
    connection: Sender, parcel_ids: Collection[UUID]
) -> Pending[dict[UUID, ParcelLog]]:
    """Read the log of these parcels without archived entries."""
    return await send(
        connection, _SQL["parcel_changes"], {"parcel_ids": uuids(list(parcel_ids))}, _parcels
    )


def _whole_parcels(rows: list[Any]) -> dict[UUID, ParcelLog]:
    if archived := {each for _, each, _, _, version, events, *_ in rows if events < version}:
        raise ArchivedHistoryError(sorted(archived))
    return _parcels(rows)


def _parcels(rows: list[Any]) -> dict[UUID, ParcelLog]:
    found: dict[UUID, ParcelLog] = {}
    for parcel_id, each, carrier_id, number, _, _, sequence, *change in rows:
        parcel = found.setdefault(parcel_id, ParcelLog())
        source = parcel.sources.setdefault(each, ParcelSource(each, carrier_id, number))
        if sequence is not None:
            parcel.logged.append(SourceChange(source, sequence, *change))
    return found
