"""Opens the spool of STATESVC_SPOOL_URL."""

from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from statesvc.settings.service_settings import SpoolSettings
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import Spool, SpoolBounds


def bounds_of(settings: SpoolSettings) -> SpoolBounds:
    return SpoolBounds(
        bytes_max=settings.bytes_max,
        age_seconds_max=settings.age_seconds_max,
        keep_seconds=settings.keep,
    )


def held_seconds_max(settings: SpoolSettings) -> float:
    """Return how long a message may stay in the spool: it waits, and is kept after that."""
    return settings.age_seconds_max + settings.keep


def folder_of(url: str) -> Path | None:
    """Return the folder of a file spool; None: it is a stream."""
    return Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None


async def open_spool(settings: SpoolSettings) -> Spool | None:
    """Open the spool; None without a setting. Raises OSError, ValueError and ImportError."""
    if settings.url is None:
        return None
    if (folder := folder_of(settings.url)) is not None:
        return FileSpool(folder, bounds_of(settings))
    nats_spool = import_module("statesvc.spool.nats_spool")
    spool: Spool = nats_spool.NatsSpool(settings.url, bounds_of(settings))
    return spool
