"""Proofs from the hashes in the database.

Each is checked against the signed root before it is returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from events.merkle.node import LeafRange
from events.merkle.proof import consistency_ranges, inclusion_ranges
from events.merkle.retained_nodes import MissingHashError
from statesvc.database.queries import queries
from statesvc.log.checkpoints import SignedHead
from statesvc.log.history import History
from statesvc.log.tree_nodes import range_roots

_SQL = queries("statesvc.log", "proofs")


class ContradictionError(RuntimeError):
    """The tree in the database contradicts the signed tree."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the log does not have the root that its checkpoint at {size} says: run `statesvc"
            " verify`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusionProof:
    """Proves that the entry with this leaf hash is at `index` below `head`."""

    index: int
    leaf_hash: bytes
    path: Sequence[bytes]
    head: SignedHead


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyProof:
    """Proves that the tree of `second` leaves begins with that of `first`."""

    first: int
    second: int
    path: Sequence[bytes]
    first_root: bytes
    second_root: bytes


async def prove_inclusion(
    connection: AsyncConnection[Any], index: int, head: SignedHead
) -> InclusionProof:
    """Prove an index below the head's size. Raises ContradictionError."""
    own = LeafRange(index, index + 1)
    # the root is computed from the same hashes as the path: if it is the signed one, the path is
    # right
    root, leaf_hash, *path = await _roots(
        connection,
        [LeafRange(0, head.tree_size), own, *inclusion_ranges(index, head.tree_size)],
        head,
    )
    _hold(root, head)
    return InclusionProof(index=index, leaf_hash=leaf_hash, path=path, head=head)


async def inclusion_paths(
    connection: AsyncConnection[Any], indexes: Sequence[int], head: SignedHead
) -> list[list[bytes]]:
    """Return the paths of several entries at once, in two queries however many they are.

    Raises ContradictionError.
    """
    paths = [inclusion_ranges(index, head.tree_size) for index in indexes]
    whole = LeafRange(0, head.tree_size)
    # the further up, the more entries have a subtree in common
    asked = list(dict.fromkeys([whole, *(each for path in paths for each in path)]))
    roots = dict(zip(asked, await _roots(connection, asked, head), strict=True))
    _hold(roots[whole], head)
    return [[roots[each] for each in path] for path in paths]


async def prove_consistency(
    connection: AsyncConnection[Any], first: int, second: int, head: SignedHead
) -> ConsistencyProof:
    """Prove sizes up to the head's. Raises ContradictionError."""
    asked = [
        LeafRange(0, head.tree_size),
        LeafRange(0, first),
        LeafRange(0, second),
        *consistency_ranges(first, second),
    ]
    root, first_root, second_root, *path = await _roots(connection, asked, head)
    _hold(root, head)
    return ConsistencyProof(
        first=first, second=second, path=path, first_root=first_root, second_root=second_root
    )


async def position_of_event(
    connection: AsyncConnection[Any], *, carrier_id: str, event_id: str, archive: History
) -> tuple[bool, int | None]:
    """Return whether the log has this event, and its index once it is sealed.

    Raises UnreadableArchiveError.
    """
    asked = {"carrier_id": carrier_id, "event_id": event_id}
    holder = await (await connection.execute(_SQL["holder_of_event"], asked)).fetchone()
    if holder is None:
        index = await archive.index_of(connection, carrier_id, event_id)
        return index is not None, index
    shipment_id, since, until = holder
    asked |= {"since": since, "until": until}
    row = await (
        await connection.execute(_SQL["position_of_event"], asked, prepare=False)
    ).fetchone()
    # its month may have left the tables between the two queries
    if row is None:
        await archive.restore_shipments(connection, [shipment_id])
        row = await (
            await connection.execute(_SQL["position_of_event"], asked, prepare=False)
        ).fetchone()
    return row is not None, None if row is None else row[0]


async def _roots(
    connection: AsyncConnection[Any], asked: Sequence[LeafRange], head: SignedHead
) -> list[bytes]:
    try:
        return await range_roots(connection, asked)
    except MissingHashError as error:
        raise ContradictionError(head.tree_size) from error


def _hold(root: bytes, head: SignedHead) -> None:
    if root != head.root:
        raise ContradictionError(head.tree_size)
