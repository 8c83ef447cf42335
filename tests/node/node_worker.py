"""The Node.js worker as a process, and why it may be missing on this machine."""

import asyncio
import base64
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


NODE: tuple[str, ...] = ("node", str(FOLDER / "worker.js"))


async def start_worker(
    dsn: str, inbox_key: bytes, log: Path, program: tuple[str, ...] = NODE, /, **settings: str
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


async def read_bodies(bodies: Iterable[tuple[str, bytes]]) -> list[bytes | None]:
    """Return what the worker's normalizers would hand over of each (carrier_id, body); None
    where they would decline.
    """
    lines = (
        json.dumps({"carrier_id": carrier_id, "body": base64.b64encode(body).decode()})
        for carrier_id, body in bodies
    )
    process = await asyncio.create_subprocess_exec(
        *("node", str(FOLDER / "normalize.js")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate("".join(f"{line}\n" for line in lines).encode())
    assert process.returncode == 0
    answers: list[Any] = [None if line == b"null" else line for line in out.splitlines()]
    return answers
