"""A database that is restored from a base backup, with traffic after it: everything refuses, a fork goes on, nothing lost comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from statesvc.database.migrator import migrate
from tests.acceptance.processes import Service, until_false
from tests.acceptance.stories import ups_alert
from tests.world.cluster import Cluster

ROLES = ("api", "worker", "notifier", "sealer")
PERSON = "Zebedee Quux"
BEFORE, AFTER, ERASED = "1ZBEFORE00000001", "1ZAFTER000000001", "1ZERASED00000001"


class Subscriber:
    """Keeps what it was sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.received.append((request.headers["webhook-id"], (await request.json())["data"]))
        return web.Response(status=204)

    def of(self, number: str) -> list[tuple[str, dict[str, Any]]]:
        return [(webhook_id, data) for webhook_id, data in self.received if data["tracking_number"] == number]


@asynccontextmanager
async def subscriber() -> AsyncIterator[tuple[Subscriber, str]]:
    taking = Subscriber()
    app = web.Application()
    app.router.add_post("/", taking.take)
    async with TestServer(app) as server:
        yield taking, str(server.make_url("/"))


async def say(service: Service, number: str, code: str, minute: int, *, signer: str | None = None) -> None:
    story = ups_alert(number, code, day=3, minute=minute, signer=signer) if signer else ups_alert(number, code, day=3, minute=minute)
    status, answer = await service.webhook("ups", story.body)
    assert status == 200, answer
    await service.drained()


async def sealed(service: Service) -> None:
    async with asyncio.timeout(30):
        await until_false(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))


async def until(what: Any, *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - other processes decide
            await asyncio.sleep(0.05)


async def readiness(service: Service) -> dict[str, str]:
    found = {}
    for role in service.roles:
        if role.process.returncode is None:
            async with service.session.get(f"{role.url}/readyz") as answer:
                found[role.role] = "ready" if answer.status == 200 else (await answer.json())["detail"]
    return found


async def stop(service: Service) -> None:
    for role in service.roles:
        if role.process.returncode is None:
            role.process.terminate()
            await role.exit_code()


@pytest.fixture
async def cluster(own_processes: None, tmp_path: Path) -> AsyncIterator[Cluster]:  # noqa: ARG001 - a mark
    made = await asyncio.to_thread(Cluster, tmp_path)
    try:
        await migrate(made.dsns.owner, made.dsns.listen, superuser_dsn=made.dsns.superuser)
        yield made
    finally:
        await asyncio.to_thread(made.stop)


@dataclass
class Loss:
    """What there was before the restore, as it went out."""

    common: str = ""
    """The feed's cursor at the backup."""
    beyond: str = ""
    """The feed's cursor at the end."""
    head: str = ""
    key: dict[str, str] = field(default_factory=dict)
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)


async def lose(cluster: Cluster, service: Service, taking: Subscriber, url: str, folder: Path) -> Loss:
    """Traffic, a base backup of the running server, more traffic, an erasure and a revoked key; then the backup is restored."""
    loss = Loss()
    await service.start(*ROLES)
    status, answer = await service.post("/v1/subscriptions", json.dumps({"url": url}), **{"Content-Type": "application/json"})
    assert status == 201, answer
    loss.key = json.loads(await service.command("keys", "create", "--name", "a test", "--scopes", "read", "--json"))
    await say(service, BEFORE, "I/OT", 300)
    await say(service, ERASED, "D/FS", 310, signer=PERSON)
    await until(lambda: taking.of(BEFORE) and taking.of(ERASED))
    await sealed(service)
    loss.common = (await service.get("/v1/feed", limit="1000"))[1]["cursor"]
    await asyncio.to_thread(cluster.base_backup)
    await say(service, BEFORE, "D/FS", 400)
    await say(service, AFTER, "I/OT", 410)
    await until(lambda: len(taking.of(BEFORE)) == 2 and taking.of(AFTER))
    assert "tombstones lie in" in await service.command("erase", "ups", ERASED, "--why", "asked to")
    await service.command("keys", "revoke", loss.key["id"])
    await sealed(service)
    loss.beyond = (await service.get("/v1/feed", limit="1000"))[1]["cursor"]
    loss.sent = dict(taking.received)
    loss.head = (folder / "checkpoint").read_text()
    await stop(service)
    await asyncio.to_thread(cluster.restore)
    return loss


async def refuses(service: Service, taking: Subscriber, loss: Loss) -> None:
    """No role is ready, nobody is notified, and no reader is led astray; webhooks are still taken and applied."""
    await service.spawn("sealer")
    async with asyncio.timeout(30):
        await until_false(lambda: service.value("SELECT NOT EXISTS (SELECT FROM statesvc.sealing_refusal)"))
    for role in ("api", "worker", "notifier"):
        await service.spawn(role)
    await say_when_up(service, BEFORE, "X/WX", 420)
    found = await readiness(service)
    assert found.keys() == set(ROLES)
    assert all("restored from an older backup" in why and "statesvc log fork" in why for why in found.values()), found
    assert dict(taking.received) == loss.sent
    status, answer = await service.get("/v1/feed", after=loss.beyond)
    assert (status, answer["code"]) == (400, "invalid_cursor")


async def fork(service: Service, loss: Loss) -> None:
    assert "this database has the first" in await service.command("log", "fork", "--why", "the disk died", "--dry-run")
    output = await service.command("log", "fork", "--why", "the disk died")
    assert "erased again: shipment" in output
    assert f"revoked again: API key {loss.key['id']}" in output
    async with asyncio.timeout(60):
        await until_false(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.sealing_refusal)"), pause_seconds=0.5)
    for role in service.roles:
        if role.process.returncode is None:
            await service.ready(role)


async def goes_on(service: Service, taking: Subscriber, loss: Loss) -> None:
    """The carrier pushes again what was lost: subscribers are notified of it again, in the new epoch and under other ids."""
    await say(service, BEFORE, "D/FS", 400)
    await say(service, AFTER, "I/OT", 410)
    await until(lambda: len({webhook_id for webhook_id, _ in taking.of(AFTER)}) == 2)
    await sealed(service)
    (_, old), (_, new) = taking.of(AFTER)
    assert ("epoch" in old, new["epoch"], new["sequence"]) == (False, 2, old["sequence"])
    again = {data.get("epoch") for webhook_id, data in taking.of(BEFORE) if webhook_id not in loss.sent}
    assert again == {2}


async def readers_are_led_on(service: Service, loss: Loss) -> None:
    status, answer = await service.get("/v1/feed", after=loss.beyond)
    assert (status, answer["code"], answer["epoch"]) == (410, "cursor_lost", 2)
    status, page = await service.get("/v1/feed", after=answer["go_on_after"])
    assert (status, page["items"][0]["entry"]["verb"]) == (200, "log.fork")
    assert page["items"][0]["entry"]["details"]["lost_checkpoint"] == loss.head
    status, page = await service.get("/v1/feed", after=loss.common)
    assert (status, page["cursor"][:2]) == (200, "2.")
    async with service.session.get(f"{service.api.url}/v1/stream", headers={"Last-Event-ID": loss.beyond}) as stream:
        assert stream.status == 410


async def what_was_over_stays_over(service: Service, loss: Loss) -> None:
    _, shown = await service.get(f"/v1/shipments/ups/{ERASED}", include="personal")
    assert PERSON not in json.dumps(shown)
    headers = {"Authorization": f"Bearer {loss.key['key']}"}
    async with service.session.get(f"{service.api.url}/v1/shipments", headers=headers) as refused:
        assert refused.status == 401


async def test_a_restored_base_backup_goes_on_in_a_new_epoch(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"STATESVC_SEALER_CHECKPOINT_FILE": str(tmp_path / "checkpoint"), "STATESVC_CHECKPOINT_PUBLISH": str(tmp_path / "outside")}
    service = Service(service_dsn=cluster.dsns.service, owner_dsn=cluster.dsns.owner, folder=tmp_path, settings=settings, forks=True)
    async with subscriber() as (taking, url), service:
        loss = await lose(cluster, service, taking, url, tmp_path)
        await refuses(service, taking, loss)
        await fork(service, loss)
        await goes_on(service, taking, loss)
        await readers_are_led_on(service, loss)
        await what_was_over_stays_over(service, loss)
        verified = await service.command("verify", "--processes", "1")
        assert "The log is sound" in verified
        assert "It was forked after a restore: epoch 2 began at entry" in verified
        assert "FAIL" not in await service.command("doctor")


async def say_when_up(service: Service, number: str, code: str, minute: int) -> None:
    """As `say`, to an API that takes requests and is not ready."""
    async with asyncio.timeout(30):
        while True:
            try:
                await say(service, number, code, minute)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return
