"""Sources of the master key: the setting, a KMS, or a file beside the embedded server.

`up` makes the file at its first start. With DATABASE_URL no key is ever made: two machines that
each made a key could not open each other's data.
"""

import base64
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.database.data_dir import sync
from statesvc.database.keyring_store import MasterKeyError, parse_master_keys
from statesvc.database.kms.kms import Credentials, Kms, kms_at
from statesvc.database.kms.root_key import load_root_key
from statesvc.settings.service_settings import Settings

FILE: Final = "master.key"
KEY_BYTES: Final = 32
# Value of STATESVC_MASTER_KEY for the key in the KMS.
_KMS: Final = "kms"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySources:
    """The keys in order, the current first; None: the key under the KMS."""

    keys: tuple[bytes | None, ...] = field(repr=False)
    kms: Kms | None

    def opened(self, root: bytes) -> MasterKeys:
        """Return the keys, with the one under the KMS."""
        return MasterKeys(root if key is None else key for key in self.keys)


def key_sources(settings: Settings) -> KeySources:
    """Return the configured sources.

    Raises MasterKeyError, which explains how to make a key, and KmsError.
    """
    given = (
        settings.keys.master_key.get_secret_value()
        if settings.keys.master_key is not None
        else _from_file(settings)
    )
    words = [word.strip() for word in given.split(",") if word.strip()]
    url = settings.keys.kms_url
    if url is None:
        if _KMS in words:
            raise MasterKeyError(
                "STATESVC_MASTER_KEY names the KMS, but STATESVC_KMS_URL is not set"
            )
        return KeySources(keys=parse_master_keys(given).keys, kms=None)
    if _KMS not in words:
        words.insert(0, _KMS)
    keys = tuple(None if word == _KMS else parse_master_keys(word).keys[0] for word in words)
    kms = kms_at(
        url.get_secret_value(),
        Credentials(token=settings.keys.kms_token, token_file=settings.keys.kms_token_file),
    )
    return KeySources(keys=keys, kms=kms)


async def open_master_keys(
    settings: Settings, connection: AsyncConnection[Any], *, make: bool = False
) -> MasterKeys:
    """Open the keys of this installation.

    `make`: a root key under the KMS where there is none. Raises MasterKeyError and KmsError.
    """
    return await open_sources(key_sources(settings), connection, make=make)


async def open_sources(
    sources: KeySources, connection: AsyncConnection[Any], *, make: bool = False
) -> MasterKeys:
    """Open the keys of sources that were looked at before."""
    root = b"" if sources.kms is None else await load_root_key(connection, sources.kms, make=make)
    return sources.opened(root)


def ensure_master_key(settings: Settings) -> Path | None:
    """Make the file (mode 0600) if there is no source yet; return a new file's path, else None."""
    data_dir = settings.database.data_dir
    path = data_dir / FILE
    if path.exists() or settings.keys.master_key is not None or settings.keys.kms_url is not None:
        return None
    unfinished = data_dir / f"{FILE}.{os.getpid()}"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        # a link, not a rename: a key that appeared meanwhile must never be replaced
        path.hardlink_to(unfinished)
    except FileExistsError:
        return None
    finally:
        unfinished.unlink()
    sync(data_dir)
    return path


def _from_file(settings: Settings) -> str:
    path = settings.database.data_dir / FILE
    return (
        path.read_text("ascii") if settings.database.database_url is None and path.exists() else ""
    )
