"""The tree against the vectors of Certificate Transparency, and against the RFC's own
definition on random trees.
"""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.merkle.compact_range import CompactRange
from events.merkle.node import EMPTY_ROOT, LeafRange, Node
from events.merkle.proof import (
    consistency_ranges,
    inclusion_ranges,
    verify_consistency,
    verify_inclusion,
)
from events.merkle.retained_nodes import (
    MissingHashError,
    compact_range_of,
    leaves_from,
    range_roots,
    retained_ranges,
)
from tests.events.merkle import naive

ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
LEAVES = [naive.leaf_hash(entry) for entry in ENTRIES]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
}
CONSISTENCY = {
    (1, 8): INCLUSION[0, 8],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def hashes(count: int) -> list[bytes]:
    return [naive.leaf_hash(f"entry {place}".encode()) for place in range(count)]


def retained(leaves: list[bytes]) -> dict[Node, bytes]:
    """Return what the database keeps of a tree."""
    return dict(leaves_from(0, leaves)) | {
        subtree.node: subtree.hash for subtree in CompactRange().extend(leaves)
    }


def only_listed(asked: list[LeafRange], everything: Mapping[Node, bytes]) -> dict[Node, bytes]:
    """Return nothing but what `retained_ranges` says is needed."""
    return {
        Node(level, at): everything[Node(level, at)]
        for level, begin, end in retained_ranges(asked)
        for at in range(begin, end)
    }


def test_roots_are_those_of_the_published_vectors() -> None:
    for size, root in enumerate(ROOTS):
        compact_range = CompactRange()
        compact_range.extend(LEAVES[:size])
        assert compact_range.root().hex() == root


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_inclusion_proofs_are_those_of_the_published_vectors(index: int, size: int) -> None:
    path = range_roots(inclusion_ranges(index, size), retained(LEAVES))
    assert [each.hex() for each in path] == INCLUSION[index, size]
    assert verify_inclusion(
        LEAVES[index], index=index, size=size, path=path, root=bytes.fromhex(ROOTS[size])
    )


@pytest.mark.parametrize(("first", "second"), CONSISTENCY)
def test_consistency_proofs_are_those_of_the_published_vectors(first: int, second: int) -> None:
    path = range_roots(consistency_ranges(first, second), retained(LEAVES))
    assert [each.hex() for each in path] == CONSISTENCY[first, second]
    roots = {"first_root": bytes.fromhex(ROOTS[first]), "second_root": bytes.fromhex(ROOTS[second])}
    assert verify_consistency(first=first, second=second, path=path, **roots)


@given(st.integers(0, 700))
def test_a_growing_tree_has_the_root_of_the_definition(size: int) -> None:
    leaves = hashes(size)
    compact_range = CompactRange()
    step = random.Random(size).randint(1, 300)
    for begin in range(0, size, step):
        compact_range.extend(leaves[begin : begin + step])
    assert compact_range.root() == naive.mth(leaves)
    again = compact_range_of(size, only_listed([LeafRange(0, size)], retained(leaves)))
    assert (again.size, again.root()) == (size, naive.mth(leaves))


@given(st.integers(1, 700), st.data())
def test_proofs_are_those_of_the_definition_and_verify(size: int, data: st.DataObject) -> None:
    leaves = hashes(size)
    root = naive.mth(leaves)
    index = data.draw(st.integers(0, size - 1))
    asked = inclusion_ranges(index, size)
    path = range_roots(asked, only_listed(asked, retained(leaves)))
    assert path == naive.path(index, leaves)
    assert verify_inclusion(leaves[index], index=index, size=size, path=path, root=root)

    first = data.draw(st.integers(1, size))
    asked = consistency_ranges(first, size)
    path = range_roots(asked, only_listed(asked, retained(leaves)))
    assert path == naive.proof(first, leaves)
    assert verify_consistency(
        first=first, second=size, path=path, first_root=naive.mth(leaves[:first]), second_root=root
    )


@given(st.integers(2, 400), st.data())
def test_a_proof_of_something_else_does_not_verify(size: int, data: st.DataObject) -> None:
    leaves = hashes(size)
    root = naive.mth(leaves)
    index = data.draw(st.integers(0, size - 1))
    path = naive.path(index, leaves)
    bad = list(path)
    place = data.draw(st.integers(0, len(bad) - 1))
    bad[place] = bytes([bad[place][0] ^ 1 << data.draw(st.integers(0, 7))]) + bad[place][1:]
    assert not verify_inclusion(leaves[index], index=index, size=size, path=bad, root=root)
    assert not verify_inclusion(leaves[index], index=index, size=size, path=path[:-1], root=root)
    assert not verify_inclusion(
        leaves[index], index=index, size=size, path=[*path, root], root=root
    )
    assert not verify_inclusion(leaves[index - 1], index=index, size=size, path=path, root=root)
    other = data.draw(st.integers(0, size - 1).filter(lambda each: each != index))
    assert not verify_inclusion(leaves[index], index=other, size=size, path=path, root=root)


@given(st.integers(2, 400), st.data())
def test_no_proof_joins_trees_that_are_not_one(size: int, data: st.DataObject) -> None:
    leaves = hashes(size)
    first = data.draw(st.integers(1, size - 1))
    roots = {"first_root": naive.mth(leaves[:first]), "second_root": naive.mth(leaves)}
    path = naive.proof(first, leaves)
    place = data.draw(st.integers(0, len(path) - 1))
    bad = [*path[:place], bytes([path[place][0] ^ 1]) + path[place][1:], *path[place + 1 :]]
    assert not verify_consistency(first=first, second=size, path=bad, **roots)
    assert not verify_consistency(first=first, second=size, path=path[:-1], **roots)
    assert not verify_consistency(first=first, second=size, path=[*path, bytes(32)], **roots)
    rewritten = [naive.leaf_hash(b"rewritten"), *leaves[1:]]
    claimed = roots | {"second_root": naive.mth(rewritten)}
    assert not verify_consistency(
        first=first, second=size, path=naive.proof(first, rewritten), **claimed
    )


def test_the_edges_of_proofs() -> None:
    one = LEAVES[0]
    assert inclusion_ranges(0, 1) == []
    assert verify_inclusion(one, index=0, size=1, path=[], root=one)
    assert not verify_inclusion(one, index=0, size=0, path=[], root=EMPTY_ROOT)
    assert consistency_ranges(0, 5) == consistency_ranges(5, 5) == []
    assert verify_consistency(first=0, second=1, path=[], first_root=EMPTY_ROOT, second_root=one)
    assert not verify_consistency(first=0, second=1, path=[], first_root=one, second_root=one)
    assert verify_consistency(first=1, second=1, path=[], first_root=one, second_root=one)
    assert not verify_consistency(first=1, second=2, path=[], first_root=one, second_root=one)
    assert not verify_consistency(first=2, second=1, path=[], first_root=one, second_root=one)
    for index, size in ((1, 1), (-1, 1)):
        with pytest.raises(ValueError, match="no leaf"):
            inclusion_ranges(index, size)
    with pytest.raises(ValueError, match="no beginning"):
        consistency_ranges(2, 1)


def test_subtrees_are_appended_whole_where_they_are_aligned() -> None:
    leaves = hashes(256 + 256 + 3)
    whole, parts = CompactRange(), CompactRange()
    whole.extend(leaves)
    parts.append_subtree(8, naive.mth(leaves[:256]))
    parts.append_subtree(8, naive.mth(leaves[256:512]))
    before = parts.copy()
    parts.extend(leaves[512:])
    assert parts.root() == whole.root()
    assert before.root() == naive.mth(leaves[:512])
    with pytest.raises(ValueError, match="no subtree"):
        parts.append_subtree(8, leaves[0])
    with pytest.raises(ValueError, match="perfect subtrees"):
        CompactRange(3, [leaves[0]])


def test_a_hash_that_is_gone_is_named() -> None:
    everything = retained(hashes(600))
    del everything[Node(8, 1)]
    with pytest.raises(MissingHashError, match="level 8, position 1"):
        range_roots([LeafRange(0, 600)], everything)
