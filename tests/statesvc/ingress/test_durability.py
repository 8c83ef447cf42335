"""An ACK waits until its message is durable, here on a standby that does not answer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from statesvc.database.pool import make_pool
from statesvc.ingress.body_memory import MemoryBound
from statesvc.ingress.group_commit import GroupCommit, GroupLimits, Stored, put
from statesvc.queue.claim import ClaimRequest, Message, claim
from tests.statesvc.ingress.conftest import LIMITS


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Dsns]:
    """Run a migrated server; commits that ask for more than its own disk wait for a
    standby that there is not.
    """
    overrides = {
        "fsync": "off",
        "shared_buffers": "32MB",
        "synchronous_standby_names": "nobody",
        "synchronous_commit": "local",
    }
    server = EmbeddedServer(tmp_path / "data", overrides=overrides)
    dsns = await asyncio.to_thread(server.start)
    try:
        await migrate(dsns.owner, dsns.service)
        yield dsns
    finally:
        await asyncio.to_thread(server.stop)


async def wait_for_no_standby(dsns: Dsns) -> None:
    """Let go of whoever waits for it."""
    assert dsns.superuser is not None
    async with await AsyncConnection.connect(dsns.superuser, autocommit=True) as connection:
        await connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        await connection.execute("SELECT pg_reload_conf()")


async def claim_one(dsns: Dsns, keyring: Keyring) -> list[Message]:
    """Return what a worker leases of one message, on a connection whose commits wait for the
    standby.
    """
    async with await AsyncConnection.connect(dsns.service, autocommit=True) as connection:
        await put(connection, [seal_message(keyring, "acme", b"b", "{}")])
        await connection.execute("SET synchronous_commit = on")
        async with asyncio.timeout(30):
            return (
                await claim(
                    connection,
                    ClaimRequest(worker="w", limit=1, lease_seconds=60, bytes_max=1_000_000),
                )
            ).messages


@pytest.mark.usefixtures("own_processes")
async def test_neither_a_message_nor_its_retry_is_acknowledged_before_it_is_durable(
    own_server: Dsns, keyring: Keyring
) -> None:
    assert await claim_one(own_server, keyring), "a lease need not be durable"
    dsn = make_conninfo(own_server.service, options="-c synchronous_commit=on")
    async with make_pool(dsn, name="test ingress", limits=LIMITS) as pool:
        group_commit = GroupCommit(
            pool, memory=MemoryBound(1_000_000), limits=GroupLimits(deadline_seconds=30)
        )
        await group_commit.start()
        first = asyncio.create_task(group_commit.put(seal_message(keyring, "acme", b"a", "{}")))
        await asyncio.wait({first}, timeout=0.3)
        retry = asyncio.create_task(group_commit.put(seal_message(keyring, "acme", b"a", "{}")))
        acknowledged, _ = await asyncio.wait({first, retry}, timeout=0.3)
        assert not acknowledged, "neither is durable, nor what the retry repeats"
        await wait_for_no_standby(own_server)
        outcomes = await asyncio.gather(first, retry)
        assert [isinstance(outcome, Stored) and outcome.duplicate for outcome in outcomes] == [
            False,
            True,
        ]
        await group_commit.stop(grace_seconds=5)
