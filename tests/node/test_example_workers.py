"""The workers of examples/foreign_worker read as the Python normalizer does, and decline the
rest.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict

from events.carriers import CARRIERS
from tests.node.grants import foreign_role
from tests.node.node_worker import EXAMPLES, node_example, start_worker
from tests.world.worker_harness import WorkerHarness

START_SECONDS: Final = 60
TIMES: Final = (
    *(
        "2026-03-01T14:05:00-05:00",
        "2026-03-01T14:05:00+00:00",
        "2024-02-29T23:59:59+14:00",
        "2026-01-01T00:00:00+05:30",
    ),
    *(
        f"2026-03-01T14:05:00.{decimals}+01:00"
        for decimals in (
            "5",
            "05",
            "123",
            "1234",
            "12345",
            "123456",
            "000001",
            "100000",
            "0",
            "000000",
        )
    ),
)
ODD: Final = (
    b"",
    b"null",
    b"[]",
    b"not JSON",
    b"\xff",
    (
        b'{"event_id":"oddA","event_id":"oddB","tracking_number":"CN000000",'
        b'"occurred_at":"2026-03-01T14:05:00-05:00","status":"delivered"}'
    ),
    (
        b'[{"event_id":"odd1","tracking_number":"CN000000","occurred_at":"2026-03-01T14:05:00-05:00",'
        b'"status":"delivered"}]'
    ),
    *(
        json.dumps(
            {
                "event_id": "odd2",
                "tracking_number": "CN000000",
                "occurred_at": "2026-03-01T14:05:00Z",
                "status": "delivered",
                **odd,
            },
            separators=(",", ":"),
        ).encode()
        for odd in (
            {},
            {"occurred_at": "2026-02-30T14:05:00+00:00"},
            {"occurred_at": "2026-03-01T24:00:00+00:00"},
            {"occurred_at": "2026-03-01T14:05:60+00:00"},
            {"occurred_at": "2026-03-01T14:05:00+15:00"},
            {"occurred_at": "2026-03-01T14:05:00.1234567+00:00"},
            {"occurred_at": 1772373900},
            {"occurred_at": "2026-03-01T14:05:00+00:00", "status": "exception"},
            {"occurred_at": "2026-03-01T14:05:00+00:00", "status": ["delivered"]},
            {"occurred_at": "2026-03-01T14:05:00+00:00", "tracking_number": "CN 000 000"},
            {"occurred_at": "2026-03-01T14:05:00+00:00", "event_id": 12345},
            {"occurred_at": "2026-03-01T14:05:00+00:00", "signed_by": "Q. Tester"},
        )
    ),
)


def scan(place: int, occurred_at: str) -> bytes:
    status = ("picked_up", "in_transit", "delivered")[place % 3]
    event = {
        "event_id": f"scan{place:04}",
        "tracking_number": f"CN{place % 5:06}",
        "occurred_at": occurred_at,
        "status": status,
    }
    return json.dumps(event, separators=(",", ":")).encode()


@pytest.fixture
def harness(harness: WorkerHarness) -> WorkerHarness:
    harness.context = replace(harness.context, carriers={"canonical": CARRIERS["canonical"]})
    return harness


@pytest.fixture
async def foreign_dsn(harness: WorkerHarness) -> AsyncIterator[str]:
    async with foreign_role(harness.database.superuser_dsn, harness.database.service_dsn) as dsn:
        yield dsn


def command(language: str, folder: Path) -> list[str]:
    """Return how to start the example in this language."""
    if language == "py":
        return [sys.executable, str(EXAMPLES / "worker.py")]
    return ["node", str(node_example(folder))]


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("language", ["py", "mjs"])
async def test_an_example_worker_outlives_the_server_s_limit_of_idle_sessions(
    harness: WorkerHarness, foreign_dsn: str, tmp_path: Path, language: str
) -> None:
    async with await AsyncConnection.connect(
        harness.database.superuser_dsn, autocommit=True
    ) as superuser:
        role = sql.Identifier(str(conninfo_to_dict(foreign_dsn)["user"]))
        await superuser.execute(
            sql.SQL("ALTER ROLE {} SET idle_session_timeout = '1s'").format(role)
        )
    process = await start_worker(
        foreign_dsn, harness.keyring.inbox.key, tmp_path / "log", command(language, tmp_path)
    )
    waiting = "SELECT count(*) FROM statesvc.inbox WHERE stage = 'raw'"
    try:
        for place, occurred_at in enumerate(TIMES[:2]):
            await harness.push(scan(place, occurred_at), carrier_id="canonical")
            await harness.rows("SELECT pg_notify('statesvc_inbox', '')")
            await harness.until(waiting, 0, seconds=START_SECONDS)
            # longer than the limit: it listens meanwhile, and notifications do not count
            await asyncio.sleep(2.5)
            assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("language", "normalizer"), [("py", "canonical@python-1"), ("mjs", "canonical@js-1")]
)
async def test_an_example_worker_reads_as_ours_does_or_not_at_all(
    harness: WorkerHarness, foreign_dsn: str, tmp_path: Path, language: str, normalizer: str
) -> None:
    plain = [scan(place, occurred_at) for place, occurred_at in enumerate(TIMES)]
    await harness.push(*plain[1:], carrier_id="canonical")
    odd = await harness.push(*ODD, carrier_id="canonical")
    (strange,) = await harness.push(plain[0], carrier_id="acme")
    process = await start_worker(
        foreign_dsn, harness.keyring.inbox.key, tmp_path / "log", command(language, tmp_path)
    )
    try:
        await harness.until(
            "SELECT count(*) FROM statesvc.inbox WHERE stage = 'raw' AND carrier_id = 'canonical'",
            0,
            seconds=START_SECONDS,
        )
        # it sleeps now, until somebody wakes it
        await harness.push(plain[0], carrier_id="canonical")
        await harness.rows("SELECT pg_notify('statesvc_inbox', '')")
        await harness.until(
            "SELECT count(*) FROM statesvc.inbox WHERE stage = 'raw' AND carrier_id = 'canonical'",
            0,
            seconds=20,
        )
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    declined = {
        message_id
        for (message_id,) in await harness.rows(
            "SELECT message_id FROM statesvc.inbox WHERE stage = 'declined'"
        )
    }
    assert declined == {*odd}
    assert await harness.rows("SELECT message_id FROM statesvc.inbox WHERE stage = 'raw'") == [
        (strange,)
    ], "a carrier that it does not name"
    assert await harness.rows(
        "SELECT normalizer, count(*)::int FROM statesvc.normalized GROUP BY 1"
    ) == [(normalizer, len(plain))]

    await harness.as_owner("DELETE FROM statesvc.inbox WHERE stage <> 'normalized'")
    await harness.work()
    assert await harness.verdicts() == {"appended": len(plain)}
    await harness.push(*(body + b" " for body in plain), carrier_id="canonical")
    await harness.work()
    assert await harness.verdicts() == {"appended": len(plain), "duplicate": len(plain)}, (
        "read by ours it is the same scan"
    )
    assert await harness.rows("SELECT cause FROM statesvc.dead_letter") == []
    assert await harness.rows("SELECT count(*)::int FROM statesvc.conflict") == [(0,)]
