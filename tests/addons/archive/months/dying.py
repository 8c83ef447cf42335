"""An archiver that is killed (9) before or after a step: DSN FOLDER STEP WHEN on its command
line.
"""

import asyncio
import os
import signal
import sys
from inspect import isawaitable
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

_STEPS: Final[dict[str, list[tuple[Any, str]]]] = {
    "_mark": [(archive_identity, "_mark")],
    "entries": [(UnfinishedFiles, "publish")],
    "publish": [(Path, "rename"), (ObjectPath, "upload")],
    "read_back": [(archive_pass, "read_back")],
    "note_verified": [(ArchiveLedger, "note_verified")],
}
"""Where a step is done; the others are functions of `month_pass`."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _doom(owner: Any, name: str, when: str) -> None:
    work = getattr(owner, name)

    async def awaited(result: Any) -> None:
        await result
        _die()

    def doomed(*arguments: Any, **named: Any) -> Any:
        if when == "before":
            _die()
        result = work(*arguments, **named)
        return awaited(result) if isawaitable(result) else _die()

    setattr(owner, name, doomed)


async def _no_wait(_seconds: float) -> None:
    """Return at once: the test moves the clock."""


async def _archive(dsn: str, folder: str, step: str, when: str) -> None:
    for owner, name in _STEPS.get(step, [(month_pass, step)]):
        _doom(owner, name, when)
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MASTER)
        assert await LOG_LEDGER.try_lead(connection)
        await month_pass.archive_months(
            connection, archiving(archive_at(folder), keyring, _no_wait)
        )


def main() -> int:
    asyncio.run(_archive(*sys.argv[1:]))
    return 0
