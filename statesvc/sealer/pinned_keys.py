"""The log's public keys, pinned by the sealer in a file outside the database, so that `verify` does not take them from what it checks.

One key a line, as `statesvc keys log` prints them, the first one first. The file only grows.
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
