"""The running sealer: awake at once, one leader, taken over from when it goes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.session_settings import SessionLimits
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import LOG, SEALED
from statesvc.sealer import sealer_loop as loop
from statesvc.sealer.leadership import Publication, silent_lead
from statesvc.sealer.sealer_loop import Sealer, SealerPace
from statesvc.telemetry.metrics import Telemetry
from tests.soak.proxy import proxy_to
from tests.world.database import without_triggers
from tests.world.log_builder import MASTER, NOWHERE, LogBuilder, log_builder, scan
from tests.world.lone_waker import LoneWaker
from tests.world.postgres import Server
from tests.world.waiting import until

PACE = SealerPace(interval_seconds=0.01, sweep_seconds=60)
PATIENT = SessionLimits(statement_seconds=20, lock_seconds=10, idle_in_transaction_seconds=15)


@asynccontextmanager
async def running(
    database: Any,
    publication: Publication = NOWHERE,
    *,
    dsn: str | None = None,
    limits: SessionLimits = PATIENT,
) -> AsyncIterator[tuple[Sealer, Waker]]:
    listener, waker, telemetry = (
        Listener(database.service_dsn, [LOG]),
        LoneWaker(database.service_dsn),
        Telemetry(),
    )
    sealer = Sealer(
        dsn or database.service_dsn,
        MASTER,
        publication,
        listener=listener,
        waker=waker,
        telemetry=telemetry,
        pace=PACE,
        limits=limits,
    )
    await listener.start()
    await waker.start()
    task = asyncio.create_task(sealer.run())
    try:
        yield sealer, waker
    finally:
        sealer.stop()
        await asyncio.wait_for(task, 10)
        await listener.stop()
        await waker.stop()
        telemetry.close()


async def is_sealed(log: LogBuilder, size: int) -> bool:
    rows = await log.rows("SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint")
    return bool(rows[0][0] >= size)


async def act_and_be_sealed(log: LogBuilder, waker: Waker, size: int, seconds: float = 10) -> None:
    await log.act()
    waker.wake(LOG)
    await until(lambda: is_sealed(log, size), seconds)


async def test_what_is_committed_is_sealed_at_the_wake_up(database: Any) -> None:
    async with log_builder(database) as log, running(database) as (sealer, waker):
        await until(lambda: sealer.leads)
        listener = Listener(database.service_dsn, [SEALED])
        await listener.start()
        await until(lambda: listener.is_up)
        listener.event(SEALED).clear()
        for size in (1, 2, 3):
            await log.append(scan(f"1Z{size}", 1, None))
            waker.wake(LOG)
            async with asyncio.timeout(1):
                await listener.event(SEALED).wait()
            listener.event(SEALED).clear()
            assert (await log.opened()).size == size
        await listener.stop()


async def test_one_leads_and_the_other_takes_over(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_STANDBY_SECONDS", 0.05)
    async with log_builder(database) as log, running(database) as (first, _):
        await until(lambda: first.leads)
        async with running(database) as (second, waker):
            await asyncio.sleep(0.2)
            assert (first.leads, second.leads) == (True, False)
            first.stop()
            await until(lambda: second.leads)
            await act_and_be_sealed(log, waker, 1)


async def test_a_leader_that_loses_its_connection_leads_again(database: Any) -> None:
    async with log_builder(database) as log, running(database) as (sealer, waker):
        await until(lambda: sealer.leads)
        async with await AsyncConnection.connect(
            database.superuser_dsn, autocommit=True
        ) as administrator:
            await administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'statesvc sealer' AND datname = current_database()"
            )
        await act_and_be_sealed(log, waker, 1)


async def test_a_sealer_that_refuses_says_why_and_signs_nothing(
    database: Any, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoint"
    async with log_builder(database, Publication(file=file, origin=None)) as log:
        await log.act()
        await log.seal()
        async with without_triggers(database.superuser_dsn) as attacker:
            await attacker.execute("DELETE FROM statesvc.sealed_batch")
            await attacker.execute("DELETE FROM statesvc.checkpoint")
        async with running(database, Publication(file=file, origin=None)) as (sealer, _):
            await until(lambda: sealer.refusal is not None)
            assert sealer.refusal is not None
            assert "restored from an older backup" in sealer.refusal
            assert not sealer.leads
            # every role can see it
            await until(
                lambda: _true_of(
                    log,
                    "SELECT count(*) = 1 FROM statesvc.sealing_refusal WHERE why LIKE '%restored%'",
                )
            )
        assert await log.rows("SELECT FROM statesvc.checkpoint") == []
        async with running(database) as (sealer, _):
            await until(lambda: sealer.leads)
        assert await log.rows("SELECT FROM statesvc.sealing_refusal") == []


async def test_the_sweep_finds_what_no_wake_up_announced(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.act()
    async with running(database) as (sealer, _):
        await until(lambda: sealer.leads)
        await until(lambda: is_sealed(event_log, 1))


async def test_a_writer_that_was_paused_inside_its_append_inverts_nothing(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 3 commits long after others were sealed; version 4, which follows at
    once, must come after it.
    """
    # how long the cut by time waited for a late batch, before there was a mark by transactions
    monkeypatch.setattr(loop, "_LATE_SECONDS", 0.05, raising=False)
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.service_dsn) as paused,
        running(database) as (sealer, waker),
    ):
        await paused.execute("SET timezone = 'UTC'")
        await until(lambda: sealer.leads)
        await log.append(scan("1ZPAUSED", 1, None))
        await log.append(scan("1ZPAUSED", 2, None))
        await LogBuilder(paused, log.keyring).append(scan("1ZPAUSED", 3, None), commit=False)
        for size in range(3, 7):
            await asyncio.sleep(0.06)
            await act_and_be_sealed(log, waker, size)
        await paused.commit()
        await log.append(scan("1ZPAUSED", 4, None))
        waker.wake(LOG)
        await until(
            lambda: _true_of(
                log,
                "SELECT 4 = max(e.version) FROM statesvc.event e JOIN statesvc.sealed_batch s USING"
                " (batch_id)",
            )
        )
        order = await log.rows(
            "SELECT e.version FROM statesvc.event e JOIN statesvc.sealed_batch s USING (batch_id)"
            " ORDER BY s.first_index + e.ordinal"
        )
        assert [version for (version,) in order] == [1, 2, 3, 4]


async def test_nothing_that_stays_open_stalls_the_sealer(database: Any) -> None:
    # a writer and a reader that idle, a dump, an index that waits for them, a prepared transaction
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.service_dsn) as writer,
        await AsyncConnection.connect(database.service_dsn) as dump,
        await AsyncConnection.connect(database.service_dsn) as preparing,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner,
        running(database) as (sealer, waker),
    ):
        await writer.execute("SET timezone = 'UTC'")
        await until(lambda: sealer.leads)
        await LogBuilder(writer, log.keyring).append(scan("1ZOPEN", 1, None), commit=False)
        await dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await dump.execute("SELECT count(*) FROM statesvc.unsealed")
        await preparing.execute("SELECT statesvc.next_batch_id()")
        await preparing.execute("PREPARE TRANSACTION 'test_sealer'")
        index = asyncio.create_task(
            owner.execute("CREATE INDEX CONCURRENTLY test_idle ON statesvc.shipment (carrier_id)")
        )
        try:
            for size in range(1, 6):
                await act_and_be_sealed(log, waker, size, seconds=2)
            assert not index.done()
        finally:
            await preparing.rollback()
            await log.connection.execute("ROLLBACK PREPARED 'test_sealer'")
            await writer.rollback()
            await dump.rollback()
            await index


IMPATIENT = SessionLimits(statement_seconds=0.2)


async def _lead_of(log: Any) -> int:
    rows = await log.rows(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint << 32"
        " | objid::bigint = hashtextextended('statesvc.sealer', 0) AND database = (SELECT oid FROM"
        " pg_database WHERE datname = current_database())"
    )
    return int(rows[0][0]) if rows else 0


async def test_a_lead_behind_a_network_that_never_answers_is_ended_and_taken_again(
    database: Any, server: Server
) -> None:
    async with (
        log_builder(database) as log,
        proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy,
    ):
        through = make_conninfo(database.service_dsn, host="127.0.0.1", port=proxy.port)
        async with running(database, dsn=through, limits=IMPATIENT) as (sealer, waker):
            await until(lambda: sealer.leads)
            before = await _lead_of(log)
            proxy.swallow()
            await act_and_be_sealed(log, waker, 1, seconds=15)
            assert await _lead_of(log) != before
            assert sealer.blocked is None


async def test_a_stopped_lead_is_named_until_it_ends(database: Any) -> None:
    if "TEST_DATABASE_URL" in os.environ:
        pytest.skip("that server's processes may run elsewhere")
    async with log_builder(database) as log, running(database, limits=IMPATIENT) as (sealer, waker):
        await until(lambda: sealer.leads)
        stopped = await _lead_of(log)
        os.kill(stopped, signal.SIGSTOP)
        try:
            await log.act()
            waker.wake(LOG)
            await until(lambda: sealer.blocked is not None)
            assert f"process {stopped} " in str(sealer.blocked)
        finally:
            os.kill(stopped, signal.SIGCONT)
        await until(lambda: is_sealed(log, 1))
        assert sealer.blocked is None


async def test_a_lead_that_works_is_not_silent(database: Any) -> None:
    async with log_builder(database) as log, running(database) as (sealer, _):
        await until(lambda: sealer.leads)
        lead = await silent_lead(log.connection, silent_seconds=0)
        assert lead is not None
        assert lead.pid == await _lead_of(log)
        assert f"pg_terminate_backend({lead.pid})" in lead.sentence
        assert await silent_lead(log.connection) is None


def test_stopping_comes_before_running_too(database: Any) -> None:
    async def scenario() -> None:
        listener = Listener(database.service_dsn, [LOG])
        sealer = Sealer(
            database.service_dsn,
            MASTER,
            NOWHERE,
            listener=listener,
            waker=LoneWaker(""),
            telemetry=Telemetry(),
            pace=PACE,
            limits=PATIENT,
        )
        sealer.stop()
        sealer.stop()
        await sealer.run()

    asyncio.run(scenario())


async def _true_of(log: Any, query: str) -> bool:
    return bool((await log.rows(query))[0][0])
