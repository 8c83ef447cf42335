"""Servers that only speak PostgreSQL's protocol are refused before anything is
changed, in one sentence.
"""

import asyncio
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.world.shell import Shell

COCKROACH = {"server_version": "13.0.0", "crdb_version": "CockroachDB CCL v25.4.1 (x86_64)"}
YUGABYTE = {"server_version": "15.12-YB-2025.2.5.0-b0"}


@asynccontextmanager
async def server_that_reports(statuses: dict[str, str]) -> AsyncIterator[str]:
    """Let everybody log in and report these parameters, as the first bytes of the
    protocol; return the DSN.
    """

    async def log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        messages = [
            (b"R", bytes(4)),
            *((b"S", f"{name}\0{value}\0".encode()) for name, value in statuses.items()),
            (b"Z", b"I"),
        ]
        writer.write(
            b"".join(kind + struct.pack("!i", len(body) + 4) + body for kind, body in messages)
        )
        await reader.read()
        writer.close()

    async with await asyncio.start_server(log_in, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield (
            f"postgresql://u@127.0.0.1:{port}/statesvc"
            "?sslmode=disable&gssencmode=disable&target_session_attrs=any"
        )


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        (COCKROACH, "this is CockroachDB CCL v25.4.1 (x86_64), which lacks LISTEN and NOTIFY"),
        (YUGABYTE, "this is YugabyteDB 15.12-YB-2025.2.5.0-b0, whose NOTIFY"),
    ],
)
async def test_migrate_and_doctor_refuse_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, statuses: dict[str, str], sentence: str
) -> None:
    async with server_that_reports(statuses) as dsn:
        monkeypatch.setenv("DATABASE_URL", dsn)
        monkeypatch.setenv("STATESVC_OWNER_URL", dsn)
        assert f"statesvc: {sentence}" in await shell("migrate", exit_code=1)
        doctor = await shell("doctor", exit_code=1)
        assert re.search(f"^FAIL  server +{re.escape(sentence)}", doctor, re.MULTILINE)
