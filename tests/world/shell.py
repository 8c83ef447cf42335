"""The command line, called in this process."""

import asyncio
import base64
import json
from typing import Any

import pytest

from statesvc.cli import main
from tests.world.database import Database

MASTER_KEY = base64.b64encode(bytes(range(32))).decode()
"""The key of `log_builder` and `api`, so that commands open what they sealed."""


class Shell:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    async def __call__(self, *arguments: str, exit_code: int = 0) -> str:
        out, err = await self.printed(*arguments, exit_code=exit_code)
        return out if exit_code == 0 else out + err

    async def json(self, *arguments: str, exit_code: int = 0) -> Any:
        out, _ = await self.printed(*arguments, "--json", exit_code=exit_code)
        return json.loads(out)

    async def printed(self, *arguments: str, exit_code: int = 0) -> tuple[str, str]:
        """Return what stands on standard output and on standard error."""
        self._capsys.readouterr()
        ended = await asyncio.to_thread(main, arguments)
        printed = self._capsys.readouterr()
        assert ended == exit_code, printed.out + printed.err
        return printed.out, printed.err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def here(shell: Shell, database: Database, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Call commands on the machine of the database's service."""
    use(database, monkeypatch)
    return shell


def use(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database.service_dsn)
    monkeypatch.setenv("STATESVC_OWNER_URL", database.owner_dsn)
    monkeypatch.setenv("STATESVC_MASTER_KEY", MASTER_KEY)
