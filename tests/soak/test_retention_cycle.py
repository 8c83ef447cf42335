"""One cycle of retention under traffic: bodies and a month of the log are archived and leave,
dedupe keys are packed, files expire.

Meanwhile messages of other shipments come in, and none is refused. Afterwards every scan of
the archived shipments comes again, in another envelope, with a new one for some: only the
new ones are appended.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.ingress.group_commit import put
from tests.acceptance.processes import MASTER_KEY, Service, running, until_false
from tests.bench.report import percentile
from tests.bench.traffic import alert
from tests.soak.server import SoakServer

SHIPMENTS = 200
SAID = 3
LATE = 20
RATE = 100
GROUP = 20
_LATER = (
    "CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL"
    " SAFE RETURN clock_timestamp() + interval '{} days'"
)
_SIZES = """
SELECT coalesce(p.relname, c.relname)::text, sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind = 'r' GROUP BY 1
"""
_PACKED = ("event_key", "stream", "message")
_SHOWN = (
    "event",
    "transition",
    "body",
    "message",
    "event_key",
    "stream",
    "shipment",
    "batch",
    "sealed_batch",
)


class Carrier:
    """Pushes straight through `statesvc.put`, as ingress does it."""

    def __init__(self, connection: AsyncConnection[tuple[object, ...]], keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring
        self.seconds: list[float] = []

    async def push(self, bodies: list[bytes]) -> None:
        began = time.perf_counter()
        await put(
            self._connection, [seal_message(self._keyring, "ups", body, "{}") for body in bodies]
        )
        self.seconds.append(time.perf_counter() - began)
        await self._connection.execute("SELECT pg_notify('statesvc_inbox', '')")

    async def push_all(self, bodies: Iterator[bytes]) -> int:
        group, pushed = [], 0
        for body in bodies:
            group.append(body)
            if len(group) == GROUP:
                await self.push(group)
                group, pushed = [], pushed + GROUP
        return pushed

    @asynccontextmanager
    async def traffic(self) -> AsyncIterator[None]:
        """Push new shipments for the time of the block."""
        ended = asyncio.Event()
        pushing = asyncio.create_task(self._push_on(ended))
        try:
            yield
        finally:
            ended.set()
            await pushing

    async def _push_on(self, ended: asyncio.Event) -> None:
        for number in count(0, GROUP):
            await self.push([alert(number + each, 0, series=1) for each in range(GROUP)])
            await asyncio.sleep(GROUP / RATE)
            if ended.is_set():
                return


@pytest.mark.soak
async def test_a_cycle_of_retention_under_traffic(own_server: SoakServer, tmp_path: Path) -> None:
    dsns = own_server.dsns
    # the worker has no archive: it would begin one by itself; and the sealer bears a
    # clock that jumps by months
    settings = {
        "STATESVC_LOG_LEVEL": "warning",
        "STATESVC_SEALER_CLOCK_SECONDS_MAX": str(400 * 86_400),
    }
    service = Service(
        service_dsn=dsns.service_dsn, owner_dsn=dsns.owner_dsn, folder=tmp_path, settings=settings
    )
    archive = {
        "STATESVC_ARCHIVE_DIR": str(tmp_path / "archive"),
        "STATESVC_ARCHIVE_KEEP_MONTHS": "1",
    }
    async with (
        running(service, "worker", "sealer"),
        await AsyncConnection.connect(dsns.service_dsn, autocommit=True) as connection,
    ):
        carrier = Carrier(connection, await load_keyring(connection, parse_master_keys(MASTER_KEY)))
        await carrier.push_all(
            alert(number, step) for step in range(SAID) for number in range(SHIPMENTS)
        )
        await _settled(service)
        before, events = await _sizes(service), await _events(service)
        assert events == SHIPMENTS * SAID

        await _jump(service, 100)
        carrier.seconds.clear()
        async with carrier.traffic():
            printed = [await _command(service, archive, "run")]
            for days in (101, 102):
                # the second one finds the notice over
                printed.append(
                    await _command(service, archive, "log", "--hot-months", "1", "--no-wait")
                )
                await _jump(service, days)
        await _settled(service)
        pushed = len(carrier.seconds) * GROUP
        assert await _events(service) == pushed
        assert (
            await service.value("SELECT sum(octet_length(packed_keys)) / 8 FROM statesvc.stream")
            == events
        )

        # each in another envelope: the bytes differ, the scans are the same
        await carrier.push_all(
            alert(number, step) + b"\n" for number in range(SHIPMENTS) for step in range(SAID)
        )
        await carrier.push_all(alert(number, SAID) for number in range(LATE))
        await _settled(service)
        assert await service.value("SELECT count(*) FROM statesvc.dead_letter") == 0
        versions = await service.rows(
            "SELECT version, count(*) FROM statesvc.stream WHERE packed_keys IS NOT NULL GROUP BY 1"
            " ORDER BY 1"
        )
        assert versions == [(SAID, SHIPMENTS - LATE), (SAID + 1, LATE)]
        exit_code, found, errors = await service.run("verify", settings=archive)
        assert exit_code == 0, found + errors
        printed.append(found)

        await _jump(service, 200)
        printed.append(await _command(service, archive, "run"))
        await _do(service, *(f"VACUUM FULL statesvc.{name}" for name in _PACKED))
        after = await _sizes(service)
    sizes = "\n".join(
        f"  {name}: {before.get(name, 0):,} > {after.get(name, 0):,} bytes" for name in _SHOWN
    )
    seconds = sorted(carrier.seconds)
    sys.stdout.write(
        f"\n{events:,} events archived, {pushed:,} messages meanwhile: commits of {GROUP} p50"
        f" {percentile(seconds, 0.5) * 1e3:.0f} ms, p99 {percentile(seconds, 0.99) * 1e3:.0f}"
        f" ms\n{sizes}\n{''.join(printed)}"
    )


async def _command(service: Service, settings: dict[str, str], *arguments: str) -> str:
    exit_code, output, errors = await service.run("archive", *arguments, settings=settings)
    assert exit_code == 0, output + errors
    return output


async def _jump(service: Service, days: int) -> None:
    await _do(service, _LATER.format(days), "SELECT count(*) FROM statesvc.ensure_partitions()")


async def _do(service: Service, *statements: str) -> None:
    async with await AsyncConnection.connect(service.owner_dsn, autocommit=True) as owner:
        for statement in statements:
            await owner.execute(statement.encode())


async def _settled(service: Service) -> None:
    await service.drained(300)
    await until_false(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))


async def _sizes(service: Service) -> dict[str, int]:
    return dict(await service.rows(_SIZES))


async def _events(service: Service) -> int:
    return int(await service.value("SELECT count(*) FROM statesvc.event"))
