"""The example workers as processes, and why Node.js may be missing on this machine."""

import asyncio
import base64
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import conninfo_to_dict

FOLDER = Path(__file__).parent
_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
}


def missing() -> str | None:
    """Return what a run of the worker lacks here, and what to do about it."""
    if shutil.which("node") is None:
        return "node is not installed (Debian: nodejs)"
    if not (FOLDER / "node_modules" / "pg").is_dir():
        return "the module pg is not installed: npm ci --prefix tests/node"
    return None


def variables(dsn: str) -> dict[str, str]:
    """Return the address as libpq's environment."""
    stated = conninfo_to_dict(dsn)
    return {variable: str(stated[name]) for name, variable in _VARIABLES.items() if name in stated}


EXAMPLES: Final = FOLDER.parents[1] / "examples" / "foreign_worker"


def node_example(folder: Path) -> Path:
    """Copy the example for Node.js to where it finds its packages."""
    if (reason := missing()) is not None:
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    folder.joinpath("node_modules").symlink_to(FOLDER / "node_modules")
    return Path(shutil.copy(EXAMPLES / "worker.mjs", folder))


async def start_worker(
    dsn: str, inbox_key: bytes, log: Path, program: Sequence[str], /, **settings: str
) -> asyncio.subprocess.Process:
    """Start a worker that knows the database and the inbox key, nothing else, and wait until it
    works.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "STATESVC_INBOX_KEY": base64.b64encode(inbox_key).decode(),
        **variables(dsn),
        **settings,
    }
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *program,
            env=environment,
            cwd=FOLDER.parents[1],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        line = await process.stdout.readline()
    assert line.endswith(b" works\n"), log.read_text()  # noqa: ASYNC240 - the worker is gone
    return process
