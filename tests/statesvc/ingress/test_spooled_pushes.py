"""While the database does not answer, pushes are kept in the spool, acknowledged, and stored later."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection, sql

from statesvc.shipments.stored_message import find_message
from statesvc.spool import spooling
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import SpoolBounds
from tests.soak.proxy import Proxy
from tests.statesvc.ingress.conftest import Serve, Site
from tests.statesvc.spool.conftest import sealed
from tests.statesvc.spool.test_nats_spool import connected
from tests.world.brokers import Nats
from tests.world.waiting import until

BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)


@pytest.fixture
def spool(tmp_path: Path) -> FileSpool:
    return FileSpool(tmp_path, BOUNDS)


@pytest.fixture
async def site(serve: Serve, line: Proxy, line_dsn: str, spool: FileSpool) -> AsyncIterator[Site]:
    yield await serve(dsn=line_dsn, spool=spool)
    line.heal()


async def acknowledged(site: Site, body: str) -> tuple[UUID, bool]:
    status, answer, _ = await site.post(body)
    assert status == 200, answer
    return UUID(answer["message_id"]), answer["duplicate"]


async def is_taken(site: Site) -> bool:
    return (await site.post("spool"))[0] == 200


async def stored(site: Site, count: int) -> list[tuple[UUID, Any, Any]]:
    """Wait until so many messages are stored, and the spool is clear of all pushes until now."""
    now = datetime.now(UTC) - timedelta(seconds=30)
    async with asyncio.timeout(20):
        while True:
            rows = await site.rows(
                "SELECT message_id, received_at, available_at FROM statesvc.inbox ORDER BY received_at"
            )
            clear = await site.rows("SELECT messages = 0, clear_until FROM statesvc.spool")
            if len(rows) >= count and all(
                empty and clear_until > now for empty, clear_until in clear
            ):
                return rows
            await asyncio.sleep(0.05)


async def test_pushes_during_an_outage_are_acknowledged_and_stored_after_it(
    site: Site, line: Proxy
) -> None:
    before = await acknowledged(site, "before")
    line.cut()
    during = [await acknowledged(site, f"during {number}") for number in range(20)]
    began = time.monotonic()
    late = await acknowledged(site, "late")
    assert time.monotonic() - began < 0.3, "an open breaker asks no database"
    line.heal()
    assert [row[0] for row in (await stored(site, 22))] == [
        one for one, _ in (before, *during, late)
    ]
    await acknowledged(site, "after")
    assert await site.rows("SELECT count(*) FROM statesvc.inbox") == [(23,)]
    assert site.wakes


async def test_a_silent_database_has_a_third_of_a_second(site: Site, line: Proxy) -> None:
    await acknowledged(site, "before")
    line.stall()
    began = time.monotonic()
    await acknowledged(site, "during")
    assert time.monotonic() - began < 2, "without a spool it waits for 2 s and is refused"
    line.heal()
    await stored(site, 2)


async def test_a_retry_of_a_stored_message_resolves_by_its_own_id(
    site: Site, line: Proxy, service: AsyncConnection[Any]
) -> None:
    first, _ = await acknowledged(site, "a")
    line.cut()
    retry, duplicate = await acknowledged(site, "a")
    assert (retry != first, duplicate) == (True, False), "nobody can know it now"
    again, duplicate = await acknowledged(site, "a")
    assert (again, duplicate) == (retry, True)
    line.heal()
    await stored(site, 1)
    for message_id in (first, retry):
        # it is drained a moment after the database is back
        found = await until(partial(find_message, service, message_id, folder=None))
        assert found.message.message_id == first


async def test_a_message_kept_while_the_database_is_well_is_stored_at_once(site: Site) -> None:
    await acknowledged(site, "before")
    spooling = site.group_commit._spooling  # noqa: SLF001 - as a push that was too slow
    assert spooling is not None
    await asyncio.sleep(0.5)
    await spooling.keep(sealed(site.keyring, "kept").message)
    await stored(site, 2)


async def test_a_spooled_message_has_the_time_of_its_ack(site: Site, line: Proxy) -> None:
    await acknowledged(site, "before")
    line.cut()
    await acknowledged(site, "during")
    await asyncio.sleep(1)
    line.heal()
    _, (_, received_at, available_at) = await stored(site, 2)
    assert available_at - received_at > timedelta(seconds=1)


async def test_where_neither_takes_it_the_push_is_refused(
    serve: Serve, line: Proxy, line_dsn: str, tmp_path: Path
) -> None:
    spool = FileSpool(tmp_path, SpoolBounds(bytes_max=1, age_seconds_max=3600))
    site = await serve(dsn=line_dsn, spool=spool)
    line.cut()
    assert [(await site.post("a"))[0], (await site.post("b"))[1]["code"]] == [
        503,
        "database_unavailable",
    ]
    line.heal()
    await until(lambda: site.group_commit.breaker.is_closed)
    assert (await site.post("a"))[0] == 200


async def test_a_restored_database_gets_what_the_spool_still_keeps(
    serve: Serve, line: Proxy, line_dsn: str, tmp_path: Path, database: Any
) -> None:
    bounds = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600, keep_seconds=3600)
    site = await serve(dsn=line_dsn, spool=FileSpool(tmp_path, bounds))
    line.cut()
    ids = [(await acknowledged(site, str(number)))[0] for number in range(5)]
    line.heal()
    await stored(site, 5)
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as owner:
        for table in ("receipt", "body", "inbox", "spool"):
            await owner.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("statesvc", table)))
    line.cut()
    ids.append((await acknowledged(site, "another"))[0])
    line.heal()
    assert [row[0] for row in await stored(site, 6)] == ids


@pytest.mark.usefixtures("own_processes")
async def test_a_spool_that_is_cut_off_matters_only_while_the_database_is_away(
    serve: Serve, line: Proxy, line_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling, "_KEEP_SECONDS", 1.0)
    server = Nats(tmp_path / "nats")
    await server.start()
    try:
        spool = await connected(f"{server.address}/SPOOL?replicas=1", BOUNDS)
        site = await serve(dsn=line_dsn, spool=spool)
        server.send(signal.SIGSTOP)
        ids = [(await acknowledged(site, f"database {number}"))[0] for number in range(20)]
        line.cut()
        # frozen, it may have taken the push: a refused one may be stored
        status, answer, _ = await site.post("neither")
        assert (status, answer["code"]) == (503, "not_durable")
        server.send(signal.SIGCONT)
        await until(partial(is_taken, site))
        line.heal()
        names = [row[0] for row in await stored(site, 21)]
        assert names[:20] == ids
        assert len(names) <= 22
    finally:
        server.send(signal.SIGCONT)
        await server.kill()
