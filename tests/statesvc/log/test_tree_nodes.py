"""Proofs of many entries at once: right, and each leaf hash read once."""

from typing import Any

import pytest

from events.merkle.proof import inclusion_ranges, verify_inclusion
from statesvc.log import tree_nodes
from statesvc.log.proofs import inclusion_paths
from tests.world.story import story


@pytest.mark.slow
async def test_the_proofs_of_all_entries_read_each_leaf_hash_once(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with story(database) as log:
        for number in range(40):
            await log.parcel(f"1Z{number:04}")
        head = await log.seal()
        leaves = await log.leaves()
        assert len(leaves) == head.tree_size > 300
        read: list[bytes] = []

        def split(joined: bytes) -> list[bytes]:
            hashes = [joined[place : place + 32] for place in range(0, len(joined), 32)]
            read.extend(hashes)
            return hashes

        monkeypatch.setattr(tree_nodes, "split_hashes", split)
        indexes = list(range(head.tree_size))
        paths = await inclusion_paths(log.connection, indexes, head)
        assert sorted(read) == sorted(leaves)
        for index, path in zip(indexes, paths, strict=True):
            assert len(path) == len(inclusion_ranges(index, head.tree_size))
            assert verify_inclusion(
                leaves[index], index=index, size=head.tree_size, path=path, root=head.root
            )
        read.clear()
        await inclusion_paths(log.connection, [7, 9], head)
        assert len(read) <= 256 + head.tree_size % 256
