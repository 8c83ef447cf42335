"""The first promise is watched first: `status` says which pushes are not acknowledged, and why,
whatever stands in the way.
"""

import asyncio
import re
import time
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from psycopg import AsyncConnection, sql

from statesvc.background.deaths import Death, record_death
from statesvc.database.pool import Pool
from statesvc.health.heartbeat import Heartbeat, Incarnation
from tests.world.database import Database
from tests.world.shell import Shell

ROLES: Final = ("ingress", "api", "worker", "notifier", "sealer")


@pytest.fixture
async def owner(owner: AsyncConnection[Any], here: Shell) -> AsyncConnection[Any]:  # noqa: ARG001 - for commands
    for role in ROLES:
        await beats(owner, role)
    return owner


async def beats(
    owner: AsyncConnection[Any],
    role: str,
    *,
    seconds_ago: float = 0,
    started_ago: float = 3600,
    **ingest: object,
) -> None:
    takes_webhooks = role in {"ingress", "api"}
    report = orjson.dumps({"acknowledged": 0, **ingest}).decode() if takes_webhooks else None
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at, beat_seconds, ingest) SELECT %(role)s || %(started)s::text, %(role)s, 'h',"
        " 7, '0', at - make_interval(secs => %(started)s), at - make_interval(secs => %(seen)s),"
        " %(beat)s, %(ingest)s::jsonb FROM statesvc.clock() at ON CONFLICT (worker_id) DO UPDATE"
        " SET last_seen_at = excluded.last_seen_at, ingest = excluded.ingest",
        {
            "role": role,
            "started": started_ago,
            "seen": seconds_ago,
            "beat": 5 if takes_webhooks else 10,
            "ingest": report,
        },
    )


async def _beat_all_but_workers(owner: AsyncConnection[Any]) -> None:
    """Let none of them fall silent by itself while a loaded machine reads the status."""
    for role in ROLES:
        if role != "worker":
            await beats(owner, role)


async def troubles(shell: Shell, *, exit_code: int = 1) -> list[tuple[str, str]]:
    told = await shell.json("status", exit_code=exit_code)
    return [(trouble["urgency"], trouble["text"]) for trouble in told["troubles"]]


async def test_the_share_that_was_not_acknowledged_is_said_with_its_cause(
    owner: AsyncConnection[Any], shell: Shell
) -> None:
    await beats(
        owner,
        "ingress",
        acknowledged=50,
        refused={"storage_low": 40, "overloaded": 10, "bad_signature": 900},
    )
    ((urgency, text),) = await troubles(shell)
    assert urgency == "now"
    assert text.startswith(
        "50 % of the pushes of the last minute were not acknowledged: 40 storage_low (the"
        " database's disk"
    )
    assert "10 overloaded" in text
    assert "bad_signature" not in text, "that is the sender's"
    await beats(owner, "ingress", acknowledged=10_000, refused={"overloaded": 1})
    assert await troubles(shell, exit_code=0) == []


async def test_a_disk_at_its_bound_is_said_before_anyone_pushes(
    owner: AsyncConnection[Any], shell: Shell
) -> None:
    await beats(owner, "ingress", disk_free_bytes=9 * 10**8, disk_free_bytes_min=10**9)
    assert await troubles(shell) == [
        (
            "now",
            (
                "the database's disk has 0.90 GB free; below 1.00 GB every push is refused"
                " (storage_low)"
            ),
        ),
    ]


@pytest.mark.parametrize("role", ["ingress", "api"])
async def test_a_silent_role_that_takes_webhooks_is_named_within_twenty_seconds(
    owner: AsyncConnection[Any], shell: Shell, role: str
) -> None:
    await beats(owner, role, seconds_ago=16)
    ((urgency, text),) = await troubles(shell)
    assert urgency == "now"
    assert text.startswith(f"{role} on h (process 7) was last heard of 16 s ago")
    # another one of its role does not answer what is sent to this one
    await beats(owner, role, started_ago=7200)
    assert len(await troubles(shell)) == 1
    await beats(owner, role, started_ago=1)
    ((urgency, text),) = await troubles(shell, exit_code=0)
    assert urgency == "note"
    assert re.fullmatch(
        rf"{role} on h \(process 7\) was last heard of \d+ s ago, and was started again", text
    )


async def test_a_silent_worker_among_others_is_worth_knowing(
    owner: AsyncConnection[Any], shell: Shell
) -> None:
    await beats(owner, "worker", seconds_ago=29)
    assert await troubles(shell, exit_code=0) == []
    await beats(owner, "worker", seconds_ago=31)
    assert [urgency for urgency, _ in await troubles(shell)] == ["now"]
    await beats(owner, "worker", started_ago=7200)
    ((urgency, text),) = await troubles(shell, exit_code=0)
    assert (urgency, "others of its role go on" in text) == ("note", True)


async def test_a_role_that_dies_again_and_again_is_one_finding(
    owner: AsyncConnection[Any], shell: Shell, pool: Pool, tmp_path: Path
) -> None:
    await owner.execute("DELETE FROM statesvc.worker WHERE role = 'worker'")
    supervisor = Incarnation(worker_id="api1", role="api", host="h", pid=1, version="0")
    sibling = Heartbeat(
        pool, [supervisor], stopping=asyncio.Event(), deaths=tmp_path / "deaths", beat_seconds=0.02
    )
    await beats(owner, "worker", started_ago=5)
    for pid, out_of_memory in ((5, False), (6, False), (7, True)):
        death = Death(
            roles=["worker"],
            pid=pid,
            exit_code=-9,
            out_of_memory=out_of_memory,
            ended_at=time.time(),
        )
        record_death(tmp_path / "deaths", death)
    await sibling.start()
    try:
        async with asyncio.timeout(10):
            while len(found := await troubles(shell)) != 1:
                await _beat_all_but_workers(owner)
        ((urgency, text),) = found
        assert urgency == "now"
        assert re.fullmatch(
            r"worker on h died 3 times within ten minutes, last \d+ s ago \(the kernel killed it,"
            r" out of memory\), "
            "and was started again; no other of its role lives",
            text,
        )
        # process 7 had beaten a moment before it died
        assert "worker" not in (await shell.json("status", exit_code=1))["processes"]
        await beats(owner, "worker", started_ago=7200)
        await _beat_all_but_workers(owner)
        ((urgency, _),) = await troubles(shell)
        assert urgency == "human"
    finally:
        await sibling.stop()


async def test_a_database_that_takes_no_writes_is_the_one_cause(
    owner: AsyncConnection[Any], shell: Shell, database: Database
) -> None:
    for role in ROLES:
        await beats(owner, role, seconds_ago=60)
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        name = sql.Identifier(superuser.info.dbname)
        await superuser.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        )
        ((urgency, text),) = await troubles(shell)
    assert urgency == "now"
    assert text.startswith(
        "the database takes no writes (default_transaction_read_only is on): no push is"
        " acknowledged"
    )


async def test_a_database_that_is_away_is_said_as_the_cause(
    monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    ((urgency, text),) = await troubles(shell)
    assert urgency == "now"
    assert text.startswith("the database is away: no push is acknowledged")
    assert "NOW" in await shell("status", exit_code=1)
