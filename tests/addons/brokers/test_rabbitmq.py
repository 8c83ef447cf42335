"""RabbitMQ, the real server: confirmed by the queue, unroutable is a failure,
refused with a reason.
"""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aio_pika
import pytest
from freezegun import freeze_time
from standardwebhooks.webhooks import Webhook

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Destination, Login, Outgoing
from statesvc.delivery.targets import Targets
from statesvc.subscriptions.subscription_secrets import Secret
from tests.addons.brokers.conftest import SECRET
from tests.world.brokers import RabbitMq

MakeOutgoing = Callable[..., Outgoing]
pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE: Final = Path(__file__).parents[3] / "docs" / "brokers.md"
GUEST = Login("guest", "guest")


def destination(server: RabbitMq, path: str, login: Login | None = GUEST) -> Destination:
    return Destination(f"amqp://127.0.0.1:{server.port}{path}", login)


async def exchange(server: RabbitMq, **arguments: object) -> str:
    """Make an exchange and a queue of the same name, bound by the routing key `a`."""
    name = f"x-{uuid4().hex[:8]}"
    await server.declare(name, name, routing_key="a", arguments=arguments)
    return name


async def test_it_waits_in_the_queue_as_a_cloud_event_that_verifies(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name, sent = await exchange(rabbitmq_server), outgoing(sequence=7)
    answer = await targets.send(destination(rabbitmq_server, f"/%2F/{name}?routing_key=a"), sent)
    assert (answer.outcome, answer.response) == (AttemptOutcome.DELIVERED, b"confirmed")
    (message,) = await rabbitmq_server.stored(name)
    assert message.body == sent.body
    assert (
        message.headers["cloudEvents_id"]
        == message.message_id
        == message.headers["webhook-id"]
        == sent.webhook_id
    )
    assert (message.headers["cloudEvents_subject"], message.headers["cloudEvents_sequence"]) == (
        sent.subject,
        "0000000007",
    )
    assert (message.content_type, message.delivery_mode) == (
        "application/json",
        aio_pika.DeliveryMode.PERSISTENT,
    )
    (sample,) = re.findall(
        r"^```python\n(from cloudevents[\s\S]*?)^```$", PAGE.read_text(), re.MULTILINE
    )
    names: dict[str, Any] = {}
    exec(sample, names)  # noqa: S102 - the page's own code
    event = names["event_of"](message)
    assert (event.get_id(), event.get_subject()) == (sent.webhook_id, sent.subject)
    with freeze_time(sent.at):
        Webhook(Secret(key=SECRET).shown).verify(
            message.body, {name: str(value) for name, value in message.headers.items()}
        )


async def test_the_default_exchange_takes_the_name_of_a_queue(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name = await exchange(rabbitmq_server)
    assert (
        await targets.send(destination(rabbitmq_server, f"/%2F/?routing_key={name}"), outgoing())
    ).outcome is AttemptOutcome.DELIVERED
    assert len(await rabbitmq_server.stored(name)) == 1


async def test_what_no_queue_takes_is_a_failure_with_a_reason(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name = await exchange(rabbitmq_server)
    unbound = await targets.send(
        destination(rabbitmq_server, f"/%2F/{name}?routing_key=b"), outgoing()
    )
    assert (unbound.outcome, unbound.detail) == (
        AttemptOutcome.UNROUTABLE,
        "no queue is bound to the exchange for this routing key",
    )
    absent = await targets.send(destination(rabbitmq_server, "/%2F/absent"), outgoing())
    assert absent.outcome is AttemptOutcome.UNROUTABLE
    assert "no exchange 'absent'" in absent.detail
    assert (
        await targets.send(destination(rabbitmq_server, "/absent/x"), outgoing())
    ).outcome is AttemptOutcome.DENIED
    assert (
        await targets.send(destination(rabbitmq_server, f"/%2F/{name}?routing_key=a"), outgoing())
    ).outcome is AttemptOutcome.DELIVERED


async def test_a_full_queue_that_rejects_is_named_as_not_stored(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    full = await exchange(rabbitmq_server, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    place = destination(rabbitmq_server, f"/%2F/{full}?routing_key=a")
    assert (await targets.send(place, outgoing())).outcome is AttemptOutcome.DELIVERED
    assert (await targets.send(place, outgoing())).outcome is AttemptOutcome.NOT_STORED


async def test_a_wrong_login_is_denied(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    for login in (Login("guest", "wrong"), Login("nobody", "guest")):
        answer = await targets.send(destination(rabbitmq_server, "/%2F/x", login), outgoing())
        assert (answer.outcome, answer.detail) == (
            AttemptOutcome.DENIED,
            "the broker refuses this login",
        )


async def test_many_at_a_time_are_each_confirmed(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name = await exchange(rabbitmq_server)
    place, sent = (
        destination(rabbitmq_server, f"/%2F/{name}?routing_key=a"),
        [outgoing() for _ in range(300)],
    )
    answers = await asyncio.gather(*(targets.send(place, one) for one in sent))
    assert {answer.outcome for answer in answers} == {AttemptOutcome.DELIVERED}
    assert {message.message_id for message in await rabbitmq_server.stored(name)} == {
        one.webhook_id for one in sent
    }
    assert targets.broker_connections == 1


async def test_no_address_is_spoken_to_that_subscribers_may_not_live_at(
    rabbitmq_server: RabbitMq, outgoing: MakeOutgoing
) -> None:
    async with Targets() as targets:
        for scheme in ("amqp", "amqps"):
            url = f"{scheme}://localhost:{rabbitmq_server.port}/%2F/x"
            assert (
                await targets.send(Destination(url, GUEST), outgoing())
            ).outcome is AttemptOutcome.ADDRESS_REFUSED


async def test_a_server_that_does_not_encrypt_gets_no_login(
    rabbitmq_server: RabbitMq, targets: Targets, outgoing: MakeOutgoing
) -> None:
    url = f"amqps://127.0.0.1:{rabbitmq_server.port}/%2F/x"
    assert (
        await targets.send(Destination(url, GUEST), outgoing())
    ).outcome is AttemptOutcome.UNREACHABLE
