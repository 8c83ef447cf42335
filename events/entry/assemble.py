"""Assembly of log rows from decided proposals. Pure but for fresh nonces.

A row has version, recorded_at, sealed part, chain and leaf hash. `recorded_at` is the database's
clock under the shipment's lock and strictly grows per shipment, so several events of a transaction
differ by a microsecond.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from events.crypto.keyring import part_context
from events.crypto.sealing import SealingKey, commitment, salted
from events.entry.kinds import Leaf, conflict_document, event_document, leaf, part_bytes
from events.entry.packed_keys import PackedKeys
from events.entry.proposal import Conflict, Proposal
from events.event import Event, value

_TICK: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class StreamHead:
    """The locked end of a shipment's stream; moves on as events are assembled.

    `key` None: erased, no data is sealed any more. `seen`: the version under the lock.
    `packed`: its dedupe keys, where they left their table. `parcel_id`: of a parcel with
    several shipments; None: this is its only shipment.
    """

    version: int
    head_hash: bytes
    recorded_at: datetime
    first_recorded_at: datetime
    key: SealingKey | None
    moved: bool = False
    seen: int = 0
    packed: PackedKeys | None = None
    parcel_id: UUID | None = None


@value(frozen=True, slots=True, kw_only=True)
class EventRow:
    proposal: Proposal
    version: int
    recorded_at: datetime
    leaf: Leaf
    sealed_part: bytes | None


@value(frozen=True, slots=True, kw_only=True)
class ConflictRow:
    conflict: Conflict
    recorded_at: datetime
    leaf: Leaf
    sealed_part: bytes | None


def assemble_events(
    appends: Sequence[Proposal], heads: Mapping[UUID, StreamHead], *, clock: datetime, epoch: int
) -> list[EventRow]:
    """Assemble the rows in the order of `appends`; advance `heads`."""
    rows = []
    for proposal in appends:
        head = heads[proposal.shipment_id]
        part_commitment, sealed_part = _seal_part(proposal.event, proposal.shipment_id, head.key)
        # grows even if the clock went back: partitions and `as_of` go by it
        recorded_at = max(clock, head.recorded_at + _TICK)
        version = head.version + 1
        row_leaf = leaf(
            event_document(
                proposal.event,
                source=proposal.source,
                shipment_id=proposal.shipment_id,
                version=version,
                recorded_at=recorded_at,
                previous_hash=head.head_hash,
                part_commitment=part_commitment,
                # an erased shipment gets nothing personal, not even a digest
                signer_digest=proposal.signer_digest if head.key else None,
            ),
            epoch=epoch,
        )
        if head.version == 0:
            head.first_recorded_at = recorded_at
        head.version, head.head_hash, head.recorded_at, head.moved = (
            version,
            row_leaf.leaf_hash,
            recorded_at,
            True,
        )
        rows.append(
            EventRow(
                proposal=proposal,
                version=version,
                recorded_at=recorded_at,
                leaf=row_leaf,
                sealed_part=sealed_part,
            )
        )
    return rows


def assemble_conflicts(
    conflicts: Sequence[Conflict],
    keys: Mapping[UUID, SealingKey | None],
    *,
    clock: datetime,
    epoch: int,
) -> list[ConflictRow]:
    """Assemble the rows in the order of `conflicts`.

    `keys`: those of the holders and, where they have a stream, of the claimed shipments.
    """
    rows = []
    for conflict in conflicts:
        proposal = conflict.proposal
        part_commitment, sealed_part = _seal_conflict(conflict, keys)
        document = conflict_document(
            proposal.event,
            source=proposal.source,
            shipment_id=conflict.holder,
            claimed_shipment_id=proposal.shipment_id,
            recorded_at=clock,
            facts_digest=proposal.event.facts_digest,
            part_commitment=part_commitment,
        )
        rows.append(
            ConflictRow(
                conflict=conflict,
                recorded_at=clock,
                leaf=leaf(document, epoch=epoch),
                sealed_part=sealed_part,
            )
        )
    return rows


def _seal_part(
    event: Event, shipment_id: UUID, key: SealingKey | None
) -> tuple[bytes | None, bytes | None]:
    if key is None or not event.personal:
        return None, None
    # salted: a name or a postcode could be guessed from its hash
    part = salted(part_bytes(event.personal))
    return commitment(part), key.seal(part, part_context(shipment_id, event.event_id))


def _seal_conflict(
    conflict: Conflict, keys: Mapping[UUID, SealingKey | None]
) -> tuple[bytes | None, bytes | None]:
    """Seal a conflict under the keys of both shipments: erasing either makes it unreadable.

    It holds personal data of both.
    """
    event, claimed_id = conflict.proposal.event, conflict.proposal.shipment_id
    part_commitment, sealed = _seal_part(event, conflict.holder, keys.get(conflict.holder))
    # a shipment without a stream has no key: erasing it makes one that seals nothing
    if sealed is None or claimed_id == conflict.holder or claimed_id not in keys:
        return part_commitment, sealed
    claimed = keys[claimed_id]
    if claimed is None:
        # one of the two is erased: then nobody may read what concerns both
        return None, None
    return part_commitment, claimed.seal(sealed, part_context(claimed_id, event.event_id))
