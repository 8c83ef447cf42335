"""Messages in any order, any number of times, by any number of clients, end in the same state."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from tests.acceptance.processes import Service, running
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import Message, messages
from tests.world import postgres
from tests.world.database import without_triggers

CLIENTS = 8
_TABLES = """
    SELECT c.oid::regclass::text FROM pg_class c
    WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""
VOLATILE = ("version", "recorded_at", "sealed_at", "log_index")


async def _post_all(service: Service, batch: list[Message]) -> None:
    queue = list(batch)

    async def client() -> None:
        while queue:
            message = queue.pop()
            status, _ = await service.webhook(message.carrier_id, message.body)
            assert status == 200

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    await service.drained()


async def _outcome(service: Service) -> dict[tuple[str, str], Any]:
    """State and scans of every shipment, without what depends on the order of arrival."""
    found = {}
    for carrier_id, number in await service.rows(
        "SELECT carrier_id, number FROM statesvc.shipment"
    ):
        _, shipment = await service.get(f"/v1/shipments/{carrier_id}/{number}", include="personal")
        _, history = await service.get(
            f"/v1/shipments/{carrier_id}/{number}/history", limit="200", include="personal"
        )
        scans = [
            {k: v for k, v in item.items() if k not in VOLATILE}
            for item in history["items"]
            if item["kind"] != "info"
        ]
        for scan in scans:
            scan.pop(
                "signed_by", None
            )  # a signer may have come with its scan or after it; the shipment's is compared
            scan.pop("estimated_delivery", None)
        found[carrier_id, number] = (
            {k: v for k, v in shipment.items() if k not in VOLATILE},
            scans,
        )
    return found


async def _assert_told_once(service: Service) -> None:
    """Check that transitions form one chain a shipment, and each change is told exactly
    once to each subscription.
    """
    twice = (
        "SELECT count(*) FROM (SELECT shipment_id, event_id FROM statesvc.event GROUP BY 1, 2"
        " HAVING count(*) > 1) d"
    )
    assert await service.value(twice) == 0
    broken = """
        SELECT count(*) FROM (SELECT from_status, lag(to_status, 1, 'unknown') OVER (PARTITION BY shipment_id ORDER BY sequence) AS before
        FROM statesvc.transition) t WHERE from_status <> before"""
    assert await service.value(broken) == 0
    last = """
        SELECT count(*) FROM statesvc.shipment s JOIN LATERAL (
            SELECT to_status FROM statesvc.transition t WHERE t.shipment_id = s.shipment_id ORDER BY sequence DESC LIMIT 1) t ON true
        WHERE t.to_status <> s.status"""
    assert await service.value(last) == 0
    missing = """
        SELECT count(*) FROM statesvc.transition t FULL JOIN (
            SELECT * FROM statesvc.notification WHERE type = 'shipment.status_changed') n USING (shipment_id, sequence)
        WHERE t.to_status IS NULL OR n.webhook_id IS NULL"""
    assert await service.value(missing) == 0


@asynccontextmanager
async def _emptied_again(superuser_dsn: str) -> AsyncIterator[None]:
    """Empty whatever table is empty now again afterwards: as fresh as another database,
    and the processes run on.
    """
    async with await AsyncConnection.connect(superuser_dsn, autocommit=True) as connection:
        kept = await _filled(connection)
        yield
        written = await _filled(connection) - kept
    # or the log's triggers would refuse
    async with without_triggers(superuser_dsn) as connection:
        await connection.execute(
            sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(map(sql.SQL, sorted(written))))
        )


async def _filled(connection: AsyncConnection[Any]) -> set[LiteralString]:
    found = await (await connection.execute(_TABLES)).fetchall()
    each = [
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(name, sql.SQL(name))
        for (name,) in found
    ]
    return {
        name
        for (name,) in await (
            await connection.execute(sql.SQL(" UNION ALL ").join(each))
        ).fetchall()
    }


@pytest.mark.parametrize(
    ("orders", "count"), [(4, 250), pytest.param(40, 500, marks=pytest.mark.soak)]
)
async def test_any_order_any_repetition_same_state(
    service_maker: ServiceMaker, server: postgres.Server, orders: int, count: int, tmp_path: Path
) -> None:
    sent = messages(count, seed=orders)
    expected: dict[tuple[str, str], Any] | None = None
    service = await service_maker(tmp_path, {})
    superuser_dsn = make_conninfo(
        server.superuser_dsn, dbname=await service.value("SELECT current_database()")
    )
    async with running(service, "api", "worker", "worker", "worker"):
        for order in range(orders):
            chance = random.Random(1000 * orders + order)
            batch = [
                message for message in sent for _ in range(chance.randint(1, 5) if order else 1)
            ]
            if order:
                chance.shuffle(batch)
            async with _emptied_again(superuser_dsn):
                subscription = b'{"url": "https://subscriber.invalid/hook"}'
                status, _ = await service.post(
                    "/v1/subscriptions", subscription, **{"Content-Type": "application/json"}
                )
                assert status == 201
                await _post_all(service, batch)
                outcome = await _outcome(service)
                await _assert_told_once(service)
                duplicates = await service.value(
                    "SELECT coalesce(sum(retries), 0) FROM statesvc.receipt"
                )
                assert duplicates == len(batch) - len(sent)
            if expected is None:
                expected = outcome
                assert len(expected) > count // 20
            assert outcome == expected
