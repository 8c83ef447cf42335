"""The log's public keys, pinned in a file outside the database for `verify`.

A key a line, as `statesvc keys log` prints them, the oldest first. The file only grows.
"""

from collections.abc import Iterable
from pathlib import Path

from events.merkle.checkpoint import VerifierKey
from statesvc.log.checkpoint_store import write_published


def read_pinned_keys(file: Path) -> list[VerifierKey]:
    """Read the pinned keys; none if there is no file yet. Raises OSError, NoteError."""
    try:
        lines = file.read_text("utf-8").split()
    except FileNotFoundError:
        return []
    return [VerifierKey.parse(line) for line in lines]


def pin_keys(file: Path, keys: Iterable[VerifierKey]) -> list[VerifierKey]:
    """Add the keys that are not there yet, and return these. Raises OSError, NoteError."""
    pinned = read_pinned_keys(file)
    added = [key for key in keys if key not in pinned]
    if added:
        write_published(file, "".join(f"{key}\n" for key in [*pinned, *added]))
    return added
