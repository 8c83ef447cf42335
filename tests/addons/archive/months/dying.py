"""An archiver that is killed (9) before or after a step: DSN FOLDER STEP WHEN on its command
line.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.archive import archive_identity, archive_pass, month_pass
from statesvc.addons.archive.archive_pass import ArchiveLedger
from statesvc.addons.archive.month import LOG_LEDGER
from statesvc.database.keyring_store import load_keyring
from statesvc.files.archive_folder import UnfinishedFiles, archive_at
from statesvc.files.object_path import ObjectPath
from tests.world.log_archiver import archiving
from tests.world.log_builder import MASTER

_BLOCKING: Final = {"_mark": archive_identity, "read_back": archive_pass}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _doom(step: str, when: str) -> None:
    if step == "publish":
        renamed = Path.rename

        def rename(path: Path, target: Path) -> Path:
            if when == "before":
                _die()
            done = renamed(path, target)
            _die()
            return done

        Path.rename = rename  # type: ignore[method-assign, assignment]
        uploaded = ObjectPath.upload

        def upload(path: ObjectPath, source: Path) -> None:
            if when == "before":
                _die()
            uploaded(path, source)
            _die()

        ObjectPath.upload = upload  # type: ignore[method-assign, assignment]
        return
    if step == "entries":
        UnfinishedFiles.publish = lambda *_: _die()  # type: ignore[method-assign, assignment]
        return
    if step in _BLOCKING:
        _doom_call(step, when)
        return
    owner: Any = ArchiveLedger if step == "note_verified" else month_pass
    worked = getattr(owner, step)

    async def doomed(*arguments: Any, **named: Any) -> Any:
        if when == "before":
            _die()
        await worked(*arguments, **named)
        _die()

    setattr(owner, step, doomed)


def _doom_call(step: str, when: str) -> None:
    module = _BLOCKING[step]
    work = getattr(module, step)

    def doomed(*arguments: Any) -> None:
        if when == "before":
            _die()
        work(*arguments)
        _die()

    setattr(module, step, doomed)


async def _no_wait(_seconds: float) -> None:
    """Return at once: the test moves the clock."""


async def _archive(dsn: str, folder: str, step: str, when: str) -> None:
    _doom(step, when)
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MASTER)
        assert await LOG_LEDGER.try_lead(connection)
        await month_pass.archive_months(
            connection, archiving(archive_at(folder), keyring, _no_wait)
        )


def main() -> int:
    asyncio.run(_archive(*sys.argv[1:]))
    return 0
