"""A database goes back to a point in time, with traffic after it: everything refuses, a fork goes
on, nothing lost comes back.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from psycopg import AsyncConnection

from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.database.migrator import migrate
from tests.acceptance.processes import Service
from tests.acceptance.stories import ups_alert
from tests.world.cluster import Cluster
from tests.world.feed_reader import FeedReader
from tests.world.waiting import until

ROLES = ("api", "worker", "notifier", "sealer")
PERSON = "Zebedee Quux"
SILENT_BEFORE, SILENT_AFTER = "1ZSILENT00000001", "1ZSILENT00000002"
"""Awaited numbers of which nothing is ever heard: told before the point, and after it."""
BEFORE, AFTER, ERASED, WAITING = (
    "1ZBEFORE00000001",
    "1ZAFTER000000001",
    "1ZERASED00000001",
    "1ZWAITING0000001",
)
POINT = "before the disk died"
JSON = {"Content-Type": "application/json"}


class Subscriber:
    """Keeps what it was sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.bodies: dict[str, set[bytes]] = defaultdict(set)

    async def take(self, request: web.Request) -> web.Response:
        webhook_id = request.headers["webhook-id"]
        self.bodies[webhook_id].add(await request.read())
        self.received.append((webhook_id, (await request.json())["data"]))
        return web.Response(status=204)

    def of(self, number: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            (webhook_id, data)
            for webhook_id, data in self.received
            if data["tracking_number"] == number
        ]


@asynccontextmanager
async def subscriber() -> AsyncIterator[tuple[Subscriber, str]]:
    taking = Subscriber()
    app = web.Application()
    app.router.add_post("/", taking.take)
    async with TestServer(app) as server:
        yield taking, str(server.make_url("/"))


async def say(
    service: Service, number: str, code: str, minute: int, *, signer: str | None = None
) -> bool:
    """Push and wait until it took effect. Return whether it was known already."""
    status, answer = await service.webhook(
        "ups", ups_alert(number, code, day=3, minute=minute, signer=signer).body
    )
    assert status == 200, answer
    await service.drained()
    return bool(answer["duplicate"])


async def await_in_vain(service: Service, number: str) -> None:
    """Await a number; its hours are over."""
    awaited = f"{service.api.url}/v1/shipments/ups/{number}/awaited"
    async with service.session.put(awaited, json={"hours": 1}) as answer:
        assert answer.status == 200, await answer.text()
    await hours_pass(service, 2)


async def hours_pass(service: Service, hours: int) -> None:
    """Look at the awaited numbers as if so many hours had passed."""
    async with await AsyncConnection.connect(service.owner_dsn, autocommit=True) as owner:
        await owner.execute(
            "UPDATE statesvc.awaited_number SET awaited_at = awaited_at - make_interval(hours =>"
            " %(hours)s), due_at = due_at - make_interval(hours => %(hours)s)",
            {"hours": hours},
        )
        await observe_never_heard(owner, worker="worker-1")
        await owner.execute("NOTIFY statesvc_outbox")


async def sealed(service: Service) -> None:
    await until(lambda: service.value("SELECT NOT EXISTS (SELECT FROM statesvc.unsealed)"))


async def readiness(service: Service) -> dict[str, str]:
    found = {}
    for role in service.roles:
        if role.process.returncode is None:
            async with service.session.get(f"{role.url}/readyz") as answer:
                found[role.role] = (
                    "ready" if answer.status == 200 else (await answer.json())["detail"]
                )
    return found


async def stop(service: Service, *names: str) -> None:
    running = [
        role for role in service.roles if role.role in names and role.process.returncode is None
    ]
    for role in running:
        role.process.terminate()
    await asyncio.gather(*(role.exit_code() for role in running))


@pytest.fixture
# a mark
async def cluster(own_processes: None, tmp_path: Path) -> AsyncIterator[Cluster]:  # noqa: ARG001
    made = await asyncio.to_thread(Cluster, tmp_path)
    try:
        await migrate(made.dsns.owner, made.dsns.listen, superuser_dsn=made.dsns.superuser)
        yield made
    finally:
        await asyncio.to_thread(made.stop)


@dataclass
class Loss:
    """State before the restore, as it went out."""

    common: str = ""
    """The feed's cursor at the point in time."""
    beyond: str = ""
    """The feed's cursor at the end."""
    head: str = ""
    subscription_id: str = ""
    key: dict[str, str] = field(default_factory=dict)
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)


async def lose(
    cluster: Cluster, service: Service, taking: Subscriber, url: str, reader: FeedReader
) -> Loss:
    """Restore: a base backup, traffic, a point in time, more traffic, an erasure and a revoked key;
    then back to the point.
    """
    loss = Loss()
    await service.start(*ROLES)
    status, answer = await service.post("/v1/subscriptions", json.dumps({"url": url}), **JSON)
    assert status == 201, answer
    loss.subscription_id = answer["id"]
    loss.key = json.loads(
        await service.command("keys", "create", "--name", "a test", "--scopes", "read", "--json")
    )
    await asyncio.to_thread(cluster.base_backup)
    await say(service, BEFORE, "I/OT", 300)
    await say(service, ERASED, "D/FS", 310, signer=PERSON)
    await await_in_vain(service, SILENT_BEFORE)
    await until(lambda: taking.of(BEFORE) and taking.of(ERASED) and taking.of(SILENT_BEFORE))
    async with service.session.put(
        f"{service.api.url}/v1/shipments/ups/{SILENT_AFTER}/awaited", json={"hours": 1}
    ) as answer:
        assert answer.status == 200, await answer.text()
    # what waits at the point is sent before the loss, and again after it
    await switch(service, loss, "pause")
    await say(service, WAITING, "I/OT", 320)
    await sealed(service)
    await until((cluster.data.parent / "outside" / "latest").exists)
    await reader.read_on()
    loss.common = reader.cursor or ""
    await asyncio.to_thread(cluster.mark, POINT)
    await switch(service, loss, "resume")
    await say(service, BEFORE, "D/FS", 400)
    await say(service, AFTER, "I/OT", 410)
    await hours_pass(service, 2)
    await until(
        lambda: (
            len(taking.of(BEFORE)) == 2
            and taking.of(AFTER)
            and taking.of(WAITING)
            and taking.of(SILENT_AFTER)
        )
    )
    assert "tombstones lie in" in await service.command("erase", "ups", ERASED, "--why", "asked to")
    await service.command("keys", "revoke", loss.key["id"])
    await sealed(service)
    await reader.read_on()
    loss.beyond = reader.cursor or ""
    loss.sent = dict(taking.received)
    loss.head = (cluster.data.parent / "checkpoint").read_text()
    await stop(service, *ROLES)
    await asyncio.to_thread(cluster.restore, POINT)
    return loss


async def switch(service: Service, loss: Loss, verb: str) -> None:
    status, answer = await service.post(
        f"/v1/subscriptions/{loss.subscription_id}/{verb}", "{}", **JSON
    )
    assert status == 200, answer


async def refuses(service: Service, taking: Subscriber, loss: Loss) -> None:
    """Check that no role is ready, nobody is notified, and no reader is led astray; webhooks are
    still taken and applied.
    """
    await service.spawn("sealer")
    await until(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.sealing_refusal)"))
    for role in ("api", "worker", "notifier"):
        await service.spawn(role)
    await say_when_up(service, BEFORE, "X/WX", 420)
    found = await readiness(service)
    assert found.keys() == set(ROLES)
    assert all(
        "restored from an older backup" in why and "statesvc log fork" in why
        for why in found.values()
    ), found
    assert dict(taking.received) == loss.sent
    status, answer = await service.get("/v1/feed", after=loss.beyond)
    assert (status, answer["code"]) == (400, "invalid_cursor")


async def fork(service: Service, loss: Loss) -> None:
    assert "this database has the first" in await service.command(
        "log", "fork", "--why", "the disk died", "--dry-run"
    )
    # one that refuses looks again each half minute
    await stop(service, "sealer")
    output = await service.command("log", "fork", "--why", "the disk died")
    assert "erased again: shipment" in output
    assert f"revoked again: API key {loss.key['id']}" in output
    await service.start("sealer")
    for role in service.roles:
        if role.process.returncode is None:
            await service.ready(role)


async def goes_on(service: Service, taking: Subscriber, loss: Loss) -> None:
    """Push again what was lost: subscribers are notified of it again, in the new
    epoch and under other ids.
    """
    await switch(service, loss, "resume")
    assert await say(service, BEFORE, "I/OT", 300)
    assert not await say(service, BEFORE, "D/FS", 400)
    assert not await say(service, AFTER, "I/OT", 410)
    await until(
        lambda: (
            len({webhook_id for webhook_id, _ in taking.of(AFTER)}) == 2
            and len(taking.of(WAITING)) == 2
        )
    )
    await sealed(service)
    first, again = taking.of(WAITING)
    assert first == again
    assert {
        webhook_id: len(bodies) for webhook_id, bodies in taking.bodies.items() if len(bodies) > 1
    } == {}
    (_, old), (_, new) = taking.of(AFTER)
    assert ("epoch" in old, new["epoch"], new["sequence"]) == (False, 2, old["sequence"])
    again_before = {
        data.get("epoch") for webhook_id, data in taking.of(BEFORE) if webhook_id not in loss.sent
    }
    assert again_before == {2}


async def nothing_is_raised_twice(service: Service, taking: Subscriber) -> None:
    """Check that what was observed before the point stays so, and that nothing is concluded before
    carriers had time to push again.
    """
    await hours_pass(service, 2)
    rows = await service.rows(
        "SELECT number, observed_at IS NOT NULL FROM statesvc.awaited_number ORDER BY number"
    )
    assert rows == [(SILENT_BEFORE, True), (SILENT_AFTER, False)]
    assert [len(taking.of(number)) for number in (SILENT_BEFORE, SILENT_AFTER)] == [1, 1]
    assert (
        await service.value("SELECT count(*) FROM statesvc.observation WHERE kind = 'never_heard'")
        == 1
    )


async def readers_are_led_on(service: Service, loss: Loss, reader: FeedReader) -> None:
    await reader.read_on()
    anew = FeedReader(service.get)
    await anew.read_on()
    assert reader.entries == anew.entries[: len(reader.entries)]
    assert reader.lost
    status, answer = await service.get("/v1/feed", after=loss.beyond)
    assert (status, answer["code"], answer["epoch"]) == (410, "cursor_lost", 2)
    status, page = await service.get("/v1/feed", after=answer["go_on_after"])
    assert (status, page["items"][0]["entry"]["verb"]) == (200, "log.fork")
    assert page["items"][0]["entry"]["details"]["lost_checkpoint"] == loss.head
    status, page = await service.get("/v1/feed", after=loss.common)
    assert (status, page["cursor"][:2]) == (200, "2.")
    async with service.session.get(
        f"{service.api.url}/v1/stream", headers={"Last-Event-ID": loss.beyond}
    ) as stream:
        assert stream.status == 410


async def what_was_over_stays_over(service: Service, loss: Loss) -> None:
    _, shown = await service.get(f"/v1/shipments/ups/{ERASED}", include="personal")
    assert PERSON not in json.dumps(shown)
    headers = {"Authorization": f"Bearer {loss.key['key']}"}
    async with service.session.get(f"{service.api.url}/v1/shipments", headers=headers) as refused:
        assert refused.status == 401


async def test_a_database_that_went_back_in_time_goes_on_in_a_new_epoch(
    cluster: Cluster, tmp_path: Path
) -> None:
    settings = {
        "STATESVC_SEALER_CHECKPOINT_FILE": str(tmp_path / "checkpoint"),
        "STATESVC_CHECKPOINT_PUBLISH": str(tmp_path / "outside"),
    }
    service = Service(
        service_dsn=cluster.dsns.service,
        owner_dsn=cluster.dsns.owner,
        folder=tmp_path,
        settings=settings,
        forks=True,
    )
    async with subscriber() as (taking, url), service:
        reader = FeedReader(service.get)
        loss = await lose(cluster, service, taking, url, reader)
        await refuses(service, taking, loss)
        await fork(service, loss)
        await goes_on(service, taking, loss)
        await nothing_is_raised_twice(service, taking)
        await readers_are_led_on(service, loss, reader)
        await what_was_over_stays_over(service, loss)
        verified = await service.command("verify", "--processes", "1")
        assert "The log is sound" in verified
        assert "It was forked after a restore: epoch 2 began at entry" in verified
        assert "FAIL" not in await service.command("doctor")


async def say_when_up(service: Service, number: str, code: str, minute: int) -> None:
    """Call `say` on an API that takes requests and is not ready."""
    async with asyncio.timeout(30):
        while True:
            try:
                await say(service, number, code, minute)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return
