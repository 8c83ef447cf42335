"""Reads the kept hashes of the tree: the leaves' from the batches, the inner nodes' from `subtree`."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import AsyncConnection

from events.merkle.compact_range import Frontier
from events.merkle.hashing import HASH_BYTES
from events.merkle.node import Node, Range
from events.merkle.retained_nodes import KeptRange, frontier_of, kept_ranges, leaves_from, range_root
from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "tree_nodes")


def split_hashes(joined: bytes) -> list[bytes]:
    """The hashes that stand one after the other in a column."""
    return [joined[place : place + HASH_BYTES] for place in range(0, len(joined), HASH_BYTES)]


async def range_roots(connection: AsyncConnection[Any], ranges: Sequence[Range]) -> list[bytes]:
    """The root over the leaves of each range. Raises MissingHashError."""
    kept = await read_kept(connection, kept_ranges(ranges))
    return [range_root(each, kept) for each in ranges]


async def tree_root(connection: AsyncConnection[Any], size: int) -> bytes:
    """The root of the tree as it was at this size. Raises MissingHashError."""
    (root,) = await range_roots(connection, [Range(0, size)])
    return root


async def read_frontier(connection: AsyncConnection[Any], size: int) -> Frontier:
    """The right edge of the tree at this size. Raises MissingHashError."""
    return frontier_of(size, await read_kept(connection, kept_ranges([Range(0, size)])))


async def read_kept(connection: AsyncConnection[Any], ranges: Iterable[KeptRange]) -> dict[Node, bytes]:
    """What the database keeps in these ranges, and perhaps a little around them."""
    listed = list(ranges)
    leaves = [each for each in listed if each.level == 0]
    inner = [each for each in listed if each.level > 0]
    kept: dict[Node, bytes] = {}
    if leaves:
        parameters = {"begins": [each.begin for each in leaves], "ends": [each.end for each in leaves]}
        cursor = await connection.execute(_SQL["leaf_hashes"], parameters, binary=True)
        for first_index, leaf_hashes in await cursor.fetchall():
            kept.update(leaves_from(first_index, split_hashes(leaf_hashes)))
    if inner:
        parameters = {
            "levels": [each.level for each in inner],
            "begins": [each.begin for each in inner],
            "ends": [each.end for each in inner],
        }
        cursor = await connection.execute(_SQL["subtrees"], parameters, binary=True)
        kept.update({Node(level, position): node for level, position, node in await cursor.fetchall()})
    return kept
