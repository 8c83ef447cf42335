"""The head that was published, kept in a file outside the database: what a restored backup cannot take back.

It is written before the head can be read by anybody, so it is never behind what somebody has seen.
"""

import os
from pathlib import Path


def read_published(path: Path) -> str | None:
    """The note in the file; None where there is none yet."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None


def write_published(path: Path, note: str) -> None:
    """Replaces the file's content for good: whole or not at all, also over a crash. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, note.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
