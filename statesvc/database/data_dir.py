"""The folder that holds the embedded server, its lock and its passwords; everything in it
is for its owner's eyes.
"""

import fcntl
import hashlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from statesvc.database.postgres_programs import (
    DataInUseError,
    EmbeddedServerError,
    UnusableFolderError,
)
from statesvc.database.server_user import ServerUser

ROLES: Final = {
    "superuser": "postgres",
    "owner": "statesvc_owner",
    "service": "statesvc_service",
    "auditor": "statesvc_auditor",
}
SERVER_FOLDER: Final = "postgres"
# PostgreSQL splits its setting of sockets at a comma, and pg_ctl hands the path to a shell, in
# double quotes.
_UNUSABLE: Final = ',"\\$`\r\n'
_LOCK: Final = "lock"
_PASSWORDS: Final = "postgres-passwords.json"
# macOS allows 104, Linux 108.
_SOCKET_PATH_BYTES_MAX: Final = 100
_SOCKET_NAME: Final = ".s.PGSQL.65535"


def require_usable_folder(data_dir: Path, *, writable: bool = False) -> None:
    """Check the folder of the embedded server, there or yet to be made.

    Raises UnusableFolderError.
    """
    path = Path(os.path.abspath(data_dir))  # noqa: PTH100 - `resolve` would follow links
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnusableFolderError(f"the path {text!a} is not UTF-8") from None
    found = sorted(set(text) & set(_UNUSABLE))
    if found:
        raise UnusableFolderError(
            f"the path {text!a} has {found[0]!a}, which PostgreSQL cannot take in the path of its"
            " data"
        )
    place = next(
        each for each in (path / SERVER_FOLDER, path, *path.parents) if os.path.lexists(each)
    )
    if not place.exists():
        raise UnusableFolderError(f"{place} is a link that leads nowhere")
    if not place.is_dir():
        raise UnusableFolderError(f"{place} is a file, and no folder")
    if writable and not os.access(place, os.W_OK | os.X_OK):
        raise UnusableFolderError(
            f"{place} takes no writes: its disk is mounted read-only, or it belongs to another user"
        )


def take_lock(data_dir: Path) -> int:
    """Lock the data for this process: return a descriptor that holds it until it is closed.

    Raises `DataInUseError`.
    """
    # flock, not a pid in a file: the kernel ends it with the process, however that dies
    descriptor = os.open(data_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise DataInUseError(str(data_dir), int(holder) if holder.isdigit() else None) from None
    # after the lock: only its holder may say who it is
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def make_passwords(data_dir: Path) -> dict[str, str]:
    return _keep_passwords(data_dir, {})


def complete_passwords(data_dir: Path) -> dict[str, str]:
    """Return the passwords by role, with new ones for roles that came with a later release."""
    passwords = read_passwords(data_dir)
    return passwords if passwords.keys() >= ROLES.keys() else _keep_passwords(data_dir, passwords)


def read_passwords(data_dir: Path) -> dict[str, str]:
    path = data_dir / _PASSWORDS
    try:
        passwords: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        raise EmbeddedServerError(
            f"{path} is missing: without it no one can log in to the server next to it; restore it"
            " from a backup"
        ) from None
    return passwords


def _keep_passwords(data_dir: Path, known: Mapping[str, str]) -> dict[str, str]:
    passwords = {role: known.get(role) or secrets.token_urlsafe(24) for role in ROLES}
    write_private(data_dir / _PASSWORDS, json.dumps(passwords), ServerUser())
    return passwords


def socket_dir(folder: Path, user: ServerUser) -> Path:
    """Return the data folder itself; where its path is too long for a socket, a private folder
    under the system's temporary one.
    """
    if _fits(folder):
        return folder
    short = _short_dir(folder)
    if short is None:
        raise EmbeddedServerError(
            "no folder has a path short enough for a socket; set STATESVC_DATA_DIR to a shorter"
            f" path than {folder.parent}"
        )
    short.mkdir(mode=0o700, exist_ok=True)
    # lstat: a link that a stranger placed under the temporary folder must not be followed
    found = short.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), user.uid}:
        raise EmbeddedServerError(
            f"{short} belongs to another user; remove it, or set STATESVC_DATA_DIR to a shorter"
            " path"
        )
    user.give(short)
    return short


def remove_socket_dir(folder: Path) -> None:
    """Remove the folder of `socket_dir`, once the server has left it."""
    short = None if _fits(folder) else _short_dir(folder)
    if short is not None:
        with suppress(OSError):
            short.rmdir()


def write_private(path: Path, text: str, user: ServerUser | None = None) -> None:
    """Replace a file as a whole; only `user`, or that of this process, may read it."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        # before the rename: a crash would leave the name with an empty file
        os.fsync(descriptor)
    if user is not None:
        user.give(unfinished)
    unfinished.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _short_dir(folder: Path) -> Path | None:
    name = "statesvc-" + hashlib.sha256(bytes(folder)).hexdigest()[:12]
    # its owner is checked
    places = (Path(tempfile.gettempdir()) / name, Path("/tmp") / name)  # noqa: S108
    return next((place for place in places if _fits(place)), None)


def _fits(folder: Path) -> bool:
    return len(bytes(folder / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES_MAX
