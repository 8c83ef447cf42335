"""Digests of the facts that a carrier stated under an event id of its own.

Part by part, and final like the ids: rows of the log are compared with them for ever.
"""

from typing import Final

from events.clear_part import Digest
from events.identity.recipe import (
    CODE_PARTS,
    PLACE_PARTS,
    Recipe,
    Stated,
    codes_of,
    place_of,
    time_of,
)

FACTS_FORMAT: Final = b"\x01"
# Bytes of core, time and each part of the place.
PARTS_BYTES: Final = (8, 8, *(4 for _ in PLACE_PARTS))
SEPARATOR: Final = "\x1f"


def stated_facts(recipe: Recipe, stated: Stated, digest: Digest) -> bytes:
    """Digest the parts: core, time, and those of the place; an absent part is zeros.

    The core is number, discriminator, piece and raw codes; time and place count as in the
    carrier's recipe. Never description, signer, ETA or status.
    """
    core = joined(
        "f1",
        "core",
        stated.number,
        stated.discriminator,
        stated.piece or "",
        *codes_of(recipe, stated.raw, CODE_PARTS),
    )
    counted = recipe.place or PLACE_PARTS
    named = zip(PLACE_PARTS, place_of(stated.place, PLACE_PARTS), strict=True)
    place = ((name, value if name in counted else "") for name, value in named)
    parts = (("time", time_of(recipe, stated)), *place)
    core_bytes, *sizes = PARTS_BYTES
    digests = (
        _part(name, value, size, digest) for (name, value), size in zip(parts, sizes, strict=True)
    )
    return FACTS_FORMAT + digest(core)[:core_bytes] + b"".join(digests)


def contradict(held: bytes, stated: bytes) -> bool:
    """Return whether facts differ in a part that both state; facts of another format, and those of
    derived ids, never contradict.
    """
    # another format: its parts lie elsewhere
    if held == stated or held[:1] != stated[:1]:
        return False
    at = len(FACTS_FORMAT)
    for size in PARTS_BYTES:
        ours, theirs = held[at : at + size], stated[at : at + size]
        # zeros: not stated. Only what both state can contradict
        if ours != theirs and any(ours) and any(theirs):
            return True
        at += size
    return False


def _part(name: str, stated: str, size: int, digest: Digest) -> bytes:
    # keyed: a city or a time has too few values for a plain hash
    return digest(joined("f1", name, stated))[:size] if stated else bytes(size)


def joined(*fields: str) -> bytes:
    # a separator that no printed text holds: two fields must not run into each other
    return SEPARATOR.join(fields).encode("utf-8", "replace")
