"""A shipment that is locked, and a worker that stands still, hold up their own messages only."""

import asyncio
import random
import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import invent
from tests.acceptance.processes import Service, running
from tests.bench.report import percentile
from tests.soak.server import SoakServer

IDLE_SECONDS: Final = 20.0
HELD_SECONDS: Final = 35.0
"""Longer than the lease of a worker."""
PER_SECOND: Final = 10
SETTLED_SECONDS_MAX: Final = 1.0
_LOCK: Final = "SELECT FROM statesvc.stream WHERE number = %s FOR UPDATE"
_SETTLED: Final = """
SELECT extract(epoch FROM coalesce(m.settled_at, statesvc.clock()) - m.received_at)::float8 FROM (
    SELECT message_id, received_at, settled_at FROM statesvc.message
    UNION ALL SELECT message_id, received_at, NULL FROM statesvc.inbox
) m WHERE m.received_at BETWEEN %s AND %s AND m.message_id <> ALL (%s)
"""


class Traffic:
    """Ten first scans a second, of every carrier in turn; where a parcel is `locked`, another
    scan of it each second.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rng = random.Random(1)
        self.parcel = invent(self._rng, "ups", datetime.now(UTC))
        self.locked = False
        self.about_locked: list[str] = []

    async def run(self) -> None:
        due, number = time.monotonic(), 0
        while True:
            for carrier_id, (_, body_of) in DIALECTS.items():
                due, number = due + 1 / PER_SECOND, number + 1
                await asyncio.sleep(due - time.monotonic())
                parcel = invent(self._rng, carrier_id, datetime.now(UTC))
                await self.push(carrier_id, body_of(parcel, parcel.scans[:1]))
                if self.locked and number % PER_SECOND == 0:
                    scans = self.parcel.scans
                    self.about_locked.append(
                        await self.push(
                            "ups",
                            DIALECTS["ups"][1](
                                self.parcel, scans[: 1 + number // PER_SECOND % len(scans)]
                            ),
                        )
                    )

    async def push(self, carrier_id: str, body: bytes) -> str:
        status, answer = await self._service.webhook(carrier_id, body)
        assert status == 200
        return str(answer["message_id"])


async def _p99(service: Service, traffic: Traffic, seconds: float) -> tuple[float, int]:
    """Return the p99 of ACK to settled, without the locked parcel's messages; one that still waits
    counts as long as it has waited.
    """
    since = await service.value("SELECT statesvc.clock()")
    await asyncio.sleep(seconds)
    until: Any = await service.value("SELECT statesvc.clock() - interval '1 s'")
    found = [row[0] for row in await service.rows(_SETTLED, since, until, traffic.about_locked)]
    return percentile(sorted(found), 0.99), len(found)


@pytest.mark.soak
async def test_others_are_settled_within_a_second(own_server: SoakServer, tmp_path: Path) -> None:
    dsns = own_server.dsns
    service = Service(
        service_dsn=dsns.service_dsn,
        owner_dsn=dsns.owner_dsn,
        folder=tmp_path,
        settings={"STATESVC_LOG_LEVEL": "warning"},
    )
    async with running(service, "api", "worker", "worker"):
        traffic = Traffic(service)
        await traffic.push("ups", DIALECTS["ups"][1](traffic.parcel, traffic.parcel.scans[:1]))
        await service.drained()
        sending = asyncio.create_task(traffic.run(), name="traffic")
        await asyncio.sleep(2)
        idle, idle_messages = await _p99(service, traffic, IDLE_SECONDS)
        async with await AsyncConnection.connect(dsns.superuser_dsn) as holder:
            assert (await holder.execute(_LOCK, (traffic.parcel.number,))).rowcount == 1
            traffic.locked = True
            locked, locked_messages = await _p99(service, traffic, HELD_SECONDS)
            traffic.locked = False
        await asyncio.sleep(2)
        worker = next(role for role in service.roles if role.role == "worker")
        worker.process.send_signal(signal.SIGSTOP)
        try:
            frozen, frozen_messages = await _p99(service, traffic, HELD_SECONDS)
        finally:
            worker.process.send_signal(signal.SIGCONT)
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        await service.drained()
    sys.stdout.write(
        f"\np99 from ACK to settled, {PER_SECOND} messages a second: idle {idle * 1e3:.0f} ms of"
        f" {idle_messages}, others next to a locked shipment {locked * 1e3:.0f} ms of"
        f" {locked_messages} ({len(traffic.about_locked)} about it), next to a frozen worker"
        f" {frozen * 1e3:.0f} ms of {frozen_messages}\n"
    )
    assert max(locked, frozen) <= max(SETTLED_SECONDS_MAX, 2 * idle)
