"""Read the hashes of the tree that are stored: leaves in the batches, inner nodes in `subtree`."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from psycopg import AsyncConnection

from events.merkle.compact_range import CompactRange
from events.merkle.node import HASH_BYTES, LeafRange, Node
from events.merkle.retained_nodes import (
    RetainedRange,
    compact_range_of,
    leaves_from,
    retained_ranges,
)
from events.merkle.retained_nodes import range_roots as roots_from
from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "tree_nodes")


def split_hashes(joined: bytes) -> list[bytes]:
    return [joined[place : place + HASH_BYTES] for place in range(0, len(joined), HASH_BYTES)]


async def range_roots(connection: AsyncConnection[Any], ranges: Sequence[LeafRange]) -> list[bytes]:
    """Compute the root over the leaves of each range. Raises MissingHashError."""
    return roots_from(ranges, await read_retained(connection, retained_ranges(ranges)))


async def tree_root(connection: AsyncConnection[Any], size: int) -> bytes:
    """Compute the root of the tree as it was at this size. Raises MissingHashError."""
    (root,) = await range_roots(connection, [LeafRange(0, size)])
    return root


async def read_compact_range(connection: AsyncConnection[Any], size: int) -> CompactRange:
    """Read the right edge of the tree at this size. Raises MissingHashError."""
    return compact_range_of(
        size, await read_retained(connection, retained_ranges([LeafRange(0, size)]))
    )


async def read_retained(
    connection: AsyncConnection[Any], ranges: Iterable[RetainedRange]
) -> dict[Node, bytes]:
    """Return the stored hashes of these ranges; each is read once, even if several ranges contain
    it.
    """
    listed = _joined(ranges)
    leaves = [each for each in listed if each.level == 0]
    inner = [each for each in listed if each.level > 0]
    retained: dict[Node, bytes] = {}
    for batches in await batches_by_month(connection, leaves) if leaves else ():
        cursor = await connection.execute(_SQL["leaf_hashes"], batches, binary=True, prepare=False)
        for first_index, leaf_hashes in await cursor.fetchall():
            retained.update(leaves_from(first_index, split_hashes(leaf_hashes)))
    if inner:
        parameters = {
            "levels": [each.level for each in inner],
            "begins": [each.begin for each in inner],
            "ends": [each.end for each in inner],
        }
        cursor = await connection.execute(_SQL["subtrees"], parameters, binary=True)
        retained.update(
            {Node(level, position): node for level, position, node in await cursor.fetchall()}
        )
    return retained


async def batches_by_month(
    connection: AsyncConnection[Any], ranges: Sequence[RetainedRange]
) -> list[dict[str, Any]]:
    """Return the batches that reach into these ranges, as `leaf_hashes` takes them.

    Those of a month together: a proof reads batches next to its entry and next to the end of the
    log, and none of all the months between.
    """
    asked = {"begins": [each.begin for each in ranges], "ends": [each.end for each in ranges]}
    months: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for batch in await (
        await connection.execute(_SQL["batches_of_ranges"], asked, binary=True)
    ).fetchall():
        at = batch[2].astimezone(UTC)
        months.setdefault((at.year, at.month), []).append(batch)
    return [_columns(batches) for batches in months.values()]


def _columns(batches: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    first_indexes, batch_ids, recorded, skips, counts = map(list, zip(*batches, strict=True))
    return {
        "first_indexes": first_indexes,
        "batch_ids": batch_ids,
        "recorded": recorded,
        "skips": skips,
        "counts": counts,
        "since": min(recorded),
        "until": max(recorded),
    }


def _joined(ranges: Iterable[RetainedRange]) -> list[RetainedRange]:
    """Return the same positions in ranges that neither overlap nor touch."""
    joined: list[RetainedRange] = []
    for each in sorted(ranges):
        last = joined[-1] if joined else None
        if last is not None and last.level == each.level and each.begin <= last.end:
            joined[-1] = RetainedRange(last.level, last.begin, max(last.end, each.end))
        else:
            joined.append(each)
    return joined
