"""Heads are stamped once an interval and at a new key; whatever the authority answers, sealing goes
on and no wrong stamp is kept.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from statesvc.database.pool import make_pool
from statesvc.log.signing_keys import rotate
from statesvc.log.timestamp import inquire
from statesvc.sealer import head_follower
from statesvc.sealer import timestamper as stamper
from statesvc.sealer.timestamper import Authority, Stamper
from statesvc.telemetry.metrics import Telemetry
from tests.world.attack import attack, places, verify
from tests.world.log_builder import MASTER, LogBuilder, log_builder
from tests.world.stamping import Tsa, make_tsa, serving
from tests.world.waiting import until
from tests.world.worker_harness import LIMITS

STAMPS = "SELECT tree_size, authority FROM statesvc.checkpoint_stamp ORDER BY received_at"


@pytest.fixture
async def tsa(tmp_path: Path) -> AsyncIterator[Tsa]:
    async with serving(make_tsa(tmp_path / "tsa")) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamper, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(stamper, "_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(head_follower, "_STANDBY_SECONDS", 0.01)


@asynccontextmanager
async def stamping(
    database: Any,
    tsa: Tsa,
    *,
    interval_seconds: float = 3600,
    leads: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Any]:
    telemetry, sealed = Telemetry(), asyncio.Event()
    authority = Authority(url=tsa.url, trust=tsa.trust, interval_seconds=interval_seconds)
    async with make_pool(database.service_dsn, name="stamper-test", limits=LIMITS) as pool:
        working = Stamper(pool, authority, leads=leads, sealed=sealed, telemetry=telemetry)
        working.start()
        try:
            yield sealed
        finally:
            await working.close()
            telemetry.close()


async def stamps(log: LogBuilder, count: int) -> list[Any]:
    await until(lambda: log.rows(f"SELECT FROM ({STAMPS}) s OFFSET {count - 1}"))
    return await log.rows(STAMPS)


async def test_one_an_interval_and_one_for_a_new_key(database: Any, tsa: Tsa) -> None:
    async with log_builder(database) as log, stamping(database, tsa) as sealed:
        await log.parcel("1Z0001")
        first = await log.seal()
        sealed.set()
        assert await stamps(log, 1) == [(first.tree_size, "CN=Stamps & Sons")]
        await log.parcel("1Z0002")
        await log.seal()
        sealed.set()
        await asyncio.sleep(0.3)
        assert len(await log.rows(STAMPS)) == 1
        async with log.connection.transaction():
            await rotate(log.connection, MASTER, actor="cli:ops", why="a test")
        newest = await log.seal()
        sealed.set()
        assert (await stamps(log, 2))[1][0] == newest.tree_size
        # the interval is over by the database's clock
        await log.parcel("1Z0003")
        newest = await log.seal()
        await database.clock.advance(3601)
        sealed.set()
        assert (await stamps(log, 3))[2][0] == newest.tree_size
        assert len(tsa.asked) == 3


async def test_a_standby_does_not_ask(database: Any, tsa: Tsa) -> None:
    async with log_builder(database) as log, stamping(database, tsa, leads=lambda: False) as sealed:
        await log.parcel("1Z0001")
        await log.seal()
        sealed.set()
        await asyncio.sleep(0.2)
        assert tsa.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["garbage", "huge", "500", "redirect", "another", "nonce", "slow"]
)
async def test_a_wrong_answer_is_not_kept_and_asked_for_again(
    database: Any, tsa: Tsa, fault: str, monkeypatch: pytest.MonkeyPatch, event_log: LogBuilder
) -> None:
    monkeypatch.setattr(stamper, "_ANSWER_SECONDS", 0.5)
    await event_log.parcel("1Z0001")
    await event_log.seal()
    if fault == "another":
        tsa.asked.append(inquire("another note").request)
    tsa.faults = [fault, fault]
    async with stamping(database, tsa) as sealed:
        # sealing does not wait for it
        await event_log.parcel("1Z0002")
        await event_log.seal()
        sealed.set()
        ((_, authority),) = await stamps(event_log, 1)
    assert authority == "CN=Stamps & Sons"
    assert tsa.faults == []
    assert verify(database, trust=tsa.trust).consistent


async def test_somebody_elses_stamp_is_refused(database: Any, tsa: Tsa, tmp_path: Path) -> None:
    stranger = make_tsa(tmp_path / "stranger")
    tsa.root = stranger.root
    async with log_builder(database) as log, stamping(database, tsa) as sealed:
        await log.parcel("1Z0001")
        await log.seal()
        sealed.set()
        await until(lambda: len(tsa.asked) >= 2)
        assert await log.rows(STAMPS) == []


@pytest.mark.slow
async def test_verify_finds_what_was_changed_about_a_stamp(
    database: Any, tsa: Tsa, tmp_path: Path, event_log: LogBuilder
) -> None:
    await event_log.parcel("1Z0001")
    await event_log.seal()
    async with stamping(database, tsa):
        await stamps(event_log, 1)
    await event_log.parcel("1Z0002")
    await event_log.seal()
    sound = verify(database, trust=tsa.trust)
    assert (places(sound), sound.stamps) == ([], 1)
    stranger = make_tsa(tmp_path / "stranger").trust
    assert "trusted" in places(verify(database, trust=stranger))[0]
    await attack(database, "UPDATE statesvc.checkpoint_stamp SET authority = 'CN=Somebody'")
    assert "is not who signed" in places(verify(database))[0]
    await attack(
        database,
        "UPDATE statesvc.checkpoint_stamp SET authority = 'CN=Stamps & Sons', stamped_at ="
        " stamped_at - interval '1 h'",
    )
    assert "is not the time" in places(verify(database))[0]
    await attack(
        database,
        "UPDATE statesvc.checkpoint_stamp SET stamped_at = stamped_at + interval '1 h'",
        "UPDATE statesvc.checkpoint_stamp SET tree_size = (SELECT max(tree_size) FROM"
        " statesvc.checkpoint)",
    )
    assert "something else than this checkpoint" in places(verify(database))[0]
    await attack(database, "UPDATE statesvc.checkpoint_stamp SET tree_size = 4711")
    assert "no checkpoint of this size" in places(verify(database))[0]
