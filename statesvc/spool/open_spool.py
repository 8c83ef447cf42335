"""Opens the spool of STATESVC_SPOOL_URL."""

from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from statesvc.settings.service_settings import SpoolSettings
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import Spool, SpoolBounds


def folder_of(url: str) -> Path | None:
    """Return the folder of a file spool; None: it is a stream."""
    return Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None


async def open_spool(url: str, settings: SpoolSettings) -> Spool:
    """Open the spool. Raises OSError, ValueError and ImportError."""
    bounds = SpoolBounds(
        bytes_max=settings.bytes_max,
        age_seconds_max=settings.age_seconds_max,
        keep_seconds=settings.keep,
    )
    if (folder := folder_of(url)) is not None:
        return FileSpool(folder, bounds)
    nats_spool = import_module("statesvc.spool.nats_spool")
    spool: Spool = nats_spool.NatsSpool(url, bounds)
    return spool
