"""The one folder of all archive files, of bodies and of the log, and what makes a change in it durable."""

import os
from pathlib import Path

from statesvc.settings.service_settings import Settings


def archive_folder(settings: Settings) -> Path | None:
    """Where archives are; None: bodies stay in the database. With DATABASE_URL there is no default: other machines must see it too."""
    if settings.archive.dir is not None:
        return settings.archive.dir
    return settings.database.data_dir / "archive" if settings.database.database_url is None else None


def remove(path: Path) -> None:
    """For good; a file that is gone already is fine."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync(path.parent)


def sync(path: Path) -> None:
    """Makes a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
