"""Where the master key comes from: the setting, or beside the embedded server a file that `up` makes at its first start.

With DATABASE_URL no key is ever made: two machines that each made one could not open each other's data.
"""

import base64
import os
import secrets
from pathlib import Path
from typing import Final

from events.sealing import MasterKeys
from statesvc.keys import parse_master_keys
from statesvc.settings import Settings

FILE: Final = "master.key"
KEY_BYTES: Final = 32


def master_keys(settings: Settings) -> MasterKeys:
    """The key of this installation. Raises MasterKeyError, which says how to make one."""
    if settings.keys.master_key is not None:
        return parse_master_keys(settings.keys.master_key.get_secret_value())
    if settings.database.database_url is not None:
        return parse_master_keys("")
    path = settings.database.data_dir / FILE
    return parse_master_keys(path.read_text("ascii") if path.exists() else "")


def ensure_master_key(data_dir: Path) -> Path | None:
    """Makes the file (mode 0600) unless it is there; the path of a new one, else None."""
    path = data_dir / FILE
    if path.exists():
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
    return path
