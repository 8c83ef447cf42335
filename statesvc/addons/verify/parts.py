"""Sealed personal parts: each opens under its shipment's key and fits its entry's commitment.

Erased parts are skipped.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection

from events.crypto.keyring import ended_context, part_context, shipment_context
from events.crypto.sealing import MasterKeys, SealError, SealingKey, commitment
from statesvc.database.queries import queries
from statesvc.log.entry_documents import AttemptDocument, ConflictDocument, SealedDocument
from statesvc.log.json_compression import open_part

_SQL = queries("statesvc.addons.verify", "entries")


class Parts:
    """The keys of the shipments of a range. Without master keys no part is opened."""

    def __init__(self, master: MasterKeys | None) -> None:
        self._master = master
        self._sealed: dict[str, bytes | None] = {}
        self._ids: dict[str, UUID] = {}
        self._keys: dict[str, SealingKey] = {}

    @property
    def opens(self) -> bool:
        return self._master is not None

    def read(self, connection: Connection[Any], shipment_ids: Iterable[str]) -> None:
        cursor = connection.execute(
            _SQL["shipment_keys"], {"shipment_ids": list(shipment_ids)}, binary=True
        )
        for text, shipment_id, sealed in cursor.fetchall():
            self._ids[text] = shipment_id
            self._sealed[text] = sealed

    def fault(self, document: SealedDocument, sealed_part: bytes | None) -> str | None:
        committed = document.part_commitment
        if committed is None:
            return None if sealed_part is None else "is there, though its entry commits to none"
        if sealed_part is None:
            return "is missing, though its entry commits to one"
        try:
            part = self._open(document, sealed_part)
        except SealError as error:
            return f"does not open: {error}"
        return (
            None
            if part is None or commitment(part).hex() == committed
            else "is not what its entry committed to"
        )

    def _open(self, document: SealedDocument, sealed: bytes) -> bytes | None:
        """Open the part; None: erased. Raises SealError."""
        shipment_id = document.shipment_id
        if isinstance(document, ConflictDocument) and document.claimed_shipment_id != shipment_id:
            claimed_id = document.claimed_shipment_id
            if claimed_id in self._sealed:
                claimed = self._key(claimed_id)
                if claimed is None:
                    return None
                if claimed.sealed(sealed):
                    sealed = claimed.open(
                        sealed, part_context(self._ids[claimed_id], document.event_id)
                    )
        key = self._key(shipment_id)
        if key is None:
            return None
        if isinstance(document, AttemptDocument):
            return open_part(
                key,
                sealed,
                ended_context(self._ids[shipment_id], document.webhook_id, document.number),
            )
        return key.open(sealed, part_context(self._ids[shipment_id], document.event_id))

    def _key(self, shipment_id: str) -> SealingKey | None:
        key = self._keys.get(shipment_id)
        if key is not None:
            return key
        # None: erased; empty: the shipment has no row, which is a fault and not an erasure
        sealed = self._sealed.get(shipment_id, b"")
        if sealed is None:
            return None
        if self._master is None or not sealed:
            raise SealError("its shipment has no key")
        key = self._master.unwrap(sealed, shipment_context(self._ids[shipment_id]))
        self._keys[shipment_id] = key
        return key
