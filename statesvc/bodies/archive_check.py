"""Checking an archive file: whether it is there, and as it was written."""

import asyncio
from pathlib import Path

from statesvc.bodies.archive_file import ArchiveFileError, ArchiveReader


async def fault_of(path: Path, sha256: bytes) -> str | None:
    """What is wrong with it, in plain words; None: it is as it was written. Reads the whole file."""
    return await asyncio.to_thread(_fault, path, sha256)


def _fault(path: Path, sha256: bytes) -> str | None:
    try:
        with ArchiveReader(path) as archive:
            return None if archive.sha256() == sha256 else "it is another file than the one that was verified"
    except FileNotFoundError:
        return "it is missing"
    except ArchiveFileError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def fault_at_a_glance(path: Path, size_bytes: int) -> str | None:
    """The same without reading it: whether it is there and as long as it was."""
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None if found == size_bytes else f"it has {found} bytes, not {size_bytes}"
