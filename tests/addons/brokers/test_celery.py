"""Tasks for Celery, over real brokers to a real worker of Celery's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
import pytest_asyncio

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Destination, Login, Outgoing
from statesvc.delivery.targets import Targets
from tests.world.brokers import RabbitMq, Redis, running_redis
from tests.world.celery_fleet import TASK, has_run, make_app, ran, running_worker

MakeOutgoing = Callable[..., Outgoing]
pytestmark = pytest.mark.asyncio(loop_scope="module")

GUEST = Login("guest", "guest")
BODY = (
    '{"type":"shipment.status_changed","data":{"from":null,"to":"delivered","name":"Ærø'
    ' \\"\\u0000"}}'.encode()
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def redis_server(
    own_processes: None,  # noqa: ARG001 - a mark
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Redis]:
    async with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as Celery names it, and as a subscription does, before the queue."""

    address: str
    target: str
    login: Login | None

    def queue(self, name: str = "fast") -> Destination:
        return Destination(f"{self.target}/{name}?task={TASK}", self.login)


@pytest.fixture
def broker(
    request: pytest.FixtureRequest, rabbitmq_server: RabbitMq, redis_server: Redis
) -> Broker:
    """Run each broker in turn."""
    if request.param == "rabbitmq":
        return Broker(
            rabbitmq_server.address, f"celery+amqp://127.0.0.1:{rabbitmq_server.port}/%2F", GUEST
        )
    return Broker(redis_server.address, f"celery+redis://127.0.0.1:{redis_server.port}/0", None)


each_broker = pytest.mark.parametrize("broker", ["rabbitmq", "redis"], indirect=True)


@each_broker
async def test_a_worker_runs_the_task_with_the_notification_as_its_argument_and_a_repeat_as_the_same(
    broker: Broker, targets: Targets, outgoing: MakeOutgoing, tmp_path: Path
) -> None:
    sent, ledger = [outgoing(body=BODY) for _ in range(50)], tmp_path / "ledger"
    async with running_worker(broker.address, ledger):
        await delivered(targets, broker.queue(), sent[0])
        answers = await asyncio.gather(*(targets.send(broker.queue(), one) for one in sent[1:]))
        assert {answer.outcome for answer in answers} == {AttemptOutcome.DELIVERED}
        async with asyncio.timeout(30):
            await has_run(ledger, len(sent))
            await delivered(targets, broker.queue(), sent[0])
            while len(ran(ledger)) <= len(sent):  # noqa: ASYNC110 - the file is another process's
                await asyncio.sleep(0.05)
    assert ran(ledger)[-1]["id"] == sent[0].webhook_id
    assert {one["id"] for one in ran(ledger)} == {one.webhook_id for one in sent}
    assert {orjson.dumps(one["body"]) for one in ran(ledger)} == {orjson.dumps(orjson.loads(BODY))}


@each_broker
async def test_what_celery_shows_of_the_arguments_holds_nothing_of_the_notification(
    broker: Broker, rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    queue = f"q-{uuid4().hex[:8]}"
    await rabbitmq_server.declare(queue, queue)
    await delivered(targets, broker.queue(queue), outgoing(body=BODY))
    with make_app(broker.address).connection_for_read() as connection:
        message = connection.SimpleQueue(queue).get(timeout=5)
    assert message.headers["argsrepr"] == "(<shipment.status_changed>,)"
    assert "delivered" not in str(message.headers)


async def test_a_queue_that_no_worker_declared_is_unroutable_on_rabbitmq(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    url = f"celery+amqp://127.0.0.1:{rabbitmq_server.port}/%2F/absent?task=a.b"
    assert (
        await targets.send(Destination(url, GUEST), outgoing())
    ).outcome is AttemptOutcome.UNROUTABLE


async def test_a_key_of_another_type_and_a_wrong_login_are_named_on_redis(
    redis_server: Redis, targets: Targets, outgoing: MakeOutgoing
) -> None:
    await redis("SET", redis_server, "taken", "x")
    url = f"celery+redis://127.0.0.1:{redis_server.port}/0/taken?task=a.b"
    answer = await targets.send(Destination(url), outgoing())
    assert (answer.outcome, "wrong kind of value" in answer.detail) == (
        AttemptOutcome.REFUSED,
        True,
    )
    for login in (Login("nobody", "wrong"), Login("", "wrong")):
        assert (
            await targets.send(Destination(url, login), outgoing())
        ).outcome is AttemptOutcome.DENIED


async def test_a_redis_that_is_full_is_named_as_not_stored_and_goes_on_later(
    redis_server: Redis, targets: Targets, outgoing: MakeOutgoing
) -> None:
    url = f"celery+redis://127.0.0.1:{redis_server.port}/0/full?task=a.b"
    await redis("CONFIG", redis_server, "SET", "maxmemory", "1")
    assert (await targets.send(Destination(url), outgoing())).outcome is AttemptOutcome.NOT_STORED
    await redis("CONFIG", redis_server, "SET", "maxmemory", "0")
    await delivered(targets, Destination(url), outgoing())


async def test_a_redis_that_was_restarted_is_connected_to_again(
    redis_server: Redis, targets: Targets, outgoing: MakeOutgoing
) -> None:
    place = Destination(f"celery+redis://127.0.0.1:{redis_server.port}/0/restarted?task=a.b")
    await delivered(targets, place, outgoing())
    await redis_server.kill()
    assert (await targets.send(place, outgoing())).outcome is AttemptOutcome.UNREACHABLE
    await redis_server.start()
    await delivered(targets, place, outgoing())
    assert await redis("LLEN", redis_server, "restarted") == 2


async def test_no_address_is_spoken_to_that_subscribers_may_not_live_at(
    redis_server: Redis, outgoing: MakeOutgoing
) -> None:
    async with Targets() as targets:
        for scheme in ("celery+redis", "celery+rediss"):
            url = f"{scheme}://localhost:{redis_server.port}/0/q?task=a.b"
            assert (
                await targets.send(Destination(url), outgoing())
            ).outcome is AttemptOutcome.ADDRESS_REFUSED


async def test_a_server_that_does_not_encrypt_gets_no_login(
    redis_server: Redis, targets: Targets, outgoing: MakeOutgoing
) -> None:
    url = f"celery+rediss://127.0.0.1:{redis_server.port}/0/q?task=a.b"
    # it takes the beginning of TLS for one of a command, and waits for the rest
    assert (
        await targets.send(Destination(url, Login("u", "p")), outgoing())
    ).outcome is AttemptOutcome.TIMED_OUT


async def delivered(targets: Targets, destination: Destination, outgoing: Outgoing) -> None:
    """Publish it; a worker that starts may not have declared its queue yet."""
    async with asyncio.timeout(30):
        while (
            answer := await targets.send(destination, outgoing)
        ).outcome is not AttemptOutcome.DELIVERED:
            assert answer.outcome in {AttemptOutcome.UNROUTABLE, AttemptOutcome.UNREACHABLE}, answer
            await asyncio.sleep(0.1)


async def redis(command: str, server: Redis, *arguments: Any) -> Any:
    from redis.asyncio import Redis as Client  # noqa: PLC0415 - its name is the server's

    client: Any = Client.from_url(server.address)
    async with client:
        return await client.execute_command(command, *arguments)
