"""Remaining digests of the dedupe keys of a shipment with all entries archived. Pure.

An id that we derive embeds its shipment, so eight bytes of its hash distinguish it from the
shipment's others; a value that a scan carried is known by its digest under the scan's id. The
database makes the same digests (migrations/functions/packed_keys.sql).
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from events.entry.proposal import CARRIED_BYTES, DedupeKey, ExistingEvent, Proposal
from events.event import value

PACKED_BYTES: Final = 8


@value(frozen=True, slots=True)
class PackedKeys:
    """Digests of a shipment: of its events' ids, and of the values carried from the start."""

    ids: frozenset[bytes]
    values: frozenset[bytes]


def unpack(ids: bytes, values: bytes | None) -> PackedKeys:
    return PackedKeys(frozenset(chunks(ids)), frozenset(chunks(values or b"")))


def chunks(packed: bytes) -> list[bytes]:
    return [packed[at : at + PACKED_BYTES] for at in range(0, len(packed), PACKED_BYTES)]


def packed_key(event_id: str) -> bytes:
    return hashlib.sha256(event_id.encode()).digest()[:PACKED_BYTES]


def packed_value(event_id: str, carried: bytes) -> bytes:
    """Digest a value (its digest) that the scan of this id carried."""
    return hashlib.sha256(event_id.encode() + carried).digest()[:PACKED_BYTES]


def known_from(
    packed: Mapping[UUID, PackedKeys], proposals: Iterable[Proposal]
) -> dict[DedupeKey, ExistingEvent]:
    """Return the known events among the proposals' keys, by the sets of these shipments."""
    found: dict[DedupeKey, ExistingEvent] = {}
    for proposal in proposals:
        held = packed.get(proposal.shipment_id)
        if held is None:
            continue
        for key in proposal.dedupe_keys():
            if packed_key(key[1]) in held.ids:
                found[key] = ExistingEvent(
                    proposal.shipment_id, b"", _carried(proposal, key[1], held)
                )
    return found


def _carried(proposal: Proposal, event_id: str, held: PackedKeys) -> bytes:
    digests = (enrichment.digest[:CARRIED_BYTES] for enrichment in proposal.enrichments)
    return b"".join(digest for digest in digests if packed_value(event_id, digest) in held.values)
