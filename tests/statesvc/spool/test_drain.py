"""`statesvc spool list | drain`: what waits, and its way into the inbox where no ingress runs."""

import asyncio
import os
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.cli import spool_command
from statesvc.spool.drainer import Drainer, ServerClock
from statesvc.spool.file_spool import FileSpool, JournalSource
from statesvc.spool.spool import Portion, SpoolBounds
from tests.statesvc.spool.conftest import sealed
from tests.statesvc.spool.test_nats_spool import connected
from tests.world.brokers import Nats
from tests.world.database import Database
from tests.world.shell import Shell, use

BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)


async def left_behind(folder: Path, keyring: Keyring, *bodies: str) -> None:
    """Leave what an ingress that ended without the database kept."""
    spool = FileSpool(folder, BOUNDS)
    for body in bodies:
        await spool.keep(sealed(keyring, body))
    await spool.close()


async def test_drain_stores_what_an_ended_ingress_left_once(
    database: Database,
    shell: Shell,
    tmp_path: Path,
    keyring: Keyring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(database, monkeypatch)
    assert "STATESVC_SPOOL_URL is not set" in await shell("spool", "drain", exit_code=1)
    assert await shell("spool", "list") == "no spool\n"
    monkeypatch.setenv("STATESVC_SPOOL_URL", f"file://{tmp_path}")
    await left_behind(tmp_path, keyring, "a", "b")
    await left_behind(tmp_path, keyring, "b", "c")
    assert "stored 4 messages" in await shell("spool", "drain")
    assert (await shell.json("spool", "drain"))["stored"] == 0
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        cursor = await connection.execute("SELECT count(*) FROM statesvc.inbox")
        assert await cursor.fetchall() == [(3,)]
    assert await asyncio.to_thread(os.listdir, tmp_path) == [], (
        "folders of ended processes go once they are drained"
    )
    assert await shell.json("spool", "list") == []


@pytest.mark.usefixtures("own_processes")
async def test_drain_waits_for_servers_and_says_where_it_cannot_read(
    database: Database,
    shell: Shell,
    tmp_path: Path,
    keyring: Keyring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(database, monkeypatch)
    (tmp_path / "file").touch()
    monkeypatch.setenv("STATESVC_SPOOL_URL", f"file://{tmp_path}/file")
    assert "STATESVC_SPOOL_URL: " in await shell("spool", "drain", exit_code=1)
    monkeypatch.setenv("STATESVC_SPOOL_URL", "nats://127.0.0.1:9")
    assert "names no stream" in await shell("spool", "drain", exit_code=1)
    monkeypatch.setattr(spool_command, "_CONNECT_SECONDS", 0.0)
    monkeypatch.setenv("STATESVC_SPOOL_URL", "nats://127.0.0.1:9/SPOOL")
    assert "nothing was drained" in await shell("spool", "drain", exit_code=1)
    monkeypatch.setattr(spool_command, "_CONNECT_SECONDS", 30.0)
    server = Nats(tmp_path / "nats")
    await server.start()
    try:
        url = f"{server.address}/SPOOL?replicas=1"
        monkeypatch.setenv("STATESVC_SPOOL_URL", url)
        spool = await connected(url)
        await spool.keep(sealed(keyring, "a"))
        await spool.close()
        assert "stored 1 messages" in await shell("spool", "drain")
    finally:
        await server.kill()


async def test_a_drain_that_lost_its_lead_stores_nothing_that_another_has_stored(
    database: Database, tmp_path: Path, keyring: Keyring
) -> None:
    spool = FileSpool(tmp_path, BOUNDS)
    await spool.keep(sealed(keyring, "a"))
    (source,) = await spool.sources()
    assert isinstance(source, JournalSource)
    late, other = (Drainer(spool, ServerClock(), dsn=database.service_dsn) for _ in range(2))
    read = source.read

    async def read_and_lose_the_lead(place: int) -> Portion | None:
        portion = await read(place)
        source.read = read  # type: ignore[method-assign]
        await late.disconnect()
        await spool.keep(sealed(keyring, "b"))
        await other.drain(source)
        return portion

    source.read = read_and_lose_the_lead  # type: ignore[method-assign]
    assert await late.drain(source), "what is left is for the other"
    assert (late.stored, other.stored) == (0, 2)
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        cursor = await connection.execute("SELECT sum(retries) FROM statesvc.receipt")
        assert await cursor.fetchall() == [(0,)]
    await late.disconnect()
    await other.disconnect()
    await spool.close()
