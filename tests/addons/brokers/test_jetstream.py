"""NATS JetStream, the real server: stored and confirmed, deduplicated by the stream, refused with a
reason, encrypted or not at all.
"""

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import orjson
import pytest
from freezegun import freeze_time
from standardwebhooks.webhooks import Webhook

from statesvc.addons.brokers.kit import Dialler
from statesvc.addons.brokers.links import Links
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Destination, Login, Outgoing
from statesvc.delivery.targets import Targets
from statesvc.subscriptions.subscription_secrets import Secret
from tests.addons.brokers.conftest import LOOPBACK, SECRET
from tests.world.brokers import Nats, running_nats
from tests.world.certificate import make_certificate

MakeOutgoing = Callable[..., Outgoing]
pytestmark = pytest.mark.asyncio(loop_scope="module")

LOGINS = """
accounts { A { jetstream: enabled, users: [
    {user: "writer", password: "p@ss/word", permissions: {publish: ["S.a", "$JS.>"], subscribe: "_INBOX.>"}},
    {user: "reader", password: "word", permissions: {publish: "$JS.>", subscribe: "_INBOX.>"}},
    {user: "maker", password: "word"}
] } }
"""


async def stream(server: Nats, **options: object) -> str:
    """Make a stream of a name of its own, with the subjects under it."""
    name = f"S{uuid4().hex[:8]}"
    await server.add_stream(name, [f"{name}.>"], **options)
    return name


async def test_it_is_stored_as_a_cloud_event_that_verifies(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name, sent = await stream(nats_server), outgoing(sequence=7)
    answer = await targets.send(Destination(f"{nats_server.address}/{name}.a?stream={name}"), sent)
    assert answer.outcome is AttemptOutcome.DELIVERED
    assert orjson.loads(answer.response) == {"stream": name, "sequence": 1, "duplicate": False}
    ((headers, data),) = await nats_server.stored(name)
    assert data == sent.body
    assert headers["ce-id"] == headers["Nats-Msg-Id"] == headers["webhook-id"] == sent.webhook_id
    attributes = {
        name.removeprefix("ce-"): unquote(value)
        for name, value in headers.items()
        if name.startswith("ce-")
    }
    assert datetime.fromisoformat(attributes.pop("time")) == sent.at
    assert attributes == {
        "specversion": "1.0",
        "id": sent.webhook_id,
        "source": "/statesvc",
        "type": sent.type,
        "subject": sent.subject,
        "partitionkey": sent.subject,
        "sequence": "0000000007",
        "datacontenttype": "application/json",
    }
    with freeze_time(sent.at):
        Webhook(Secret(key=SECRET).shown).verify(
            data, {name: unquote(value) for name, value in headers.items()}
        )


async def test_the_stream_itself_drops_what_is_published_again(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name, sent = await stream(nats_server), outgoing()
    answers = [
        await targets.send(Destination(f"{nats_server.address}/{name}.a"), sent) for _ in range(3)
    ]
    assert [answer.outcome for answer in answers] == [AttemptOutcome.DELIVERED] * 3
    assert [orjson.loads(answer.response)["duplicate"] for answer in answers] == [False, True, True]
    assert len(await nats_server.stored(name)) == 1


async def test_where_nothing_takes_it_the_reason_is_named(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name = await stream(nats_server)
    nowhere = await targets.send(Destination(f"{nats_server.address}/no.stream"), outgoing())
    assert (nowhere.outcome, nowhere.detail[:9]) == (AttemptOutcome.UNROUTABLE, "no stream")
    other = await targets.send(
        Destination(f"{nats_server.address}/{name}.a?stream=OTHER"), outgoing()
    )
    assert other.outcome is AttemptOutcome.UNROUTABLE
    assert "another stream" in other.detail


async def test_a_full_stream_and_a_large_message_are_refusals(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    full = await stream(nats_server, max_msgs=1, discard="new")
    url = f"{nats_server.address}/{full}.a"
    assert (await targets.send(Destination(url), outgoing())).outcome is AttemptOutcome.DELIVERED
    beyond = await targets.send(Destination(url), outgoing())
    assert (beyond.outcome, beyond.detail) == (
        AttemptOutcome.NOT_STORED,
        "maximum messages exceeded",
    )
    large = await targets.send(Destination(url), outgoing(body=b"x" * (1 << 20) + b"x"))
    assert large.outcome is AttemptOutcome.REFUSED
    assert "max_payload" in large.detail


async def test_something_that_is_no_stream_confirms_nothing(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with nats_server.client() as client:

        async def respond(message: object) -> None:
            await message.respond(b"thanks")  # type: ignore[attr-defined]

        await client.subscribe("echo", cb=respond)
        await client.flush()
        answer = await targets.send(Destination(f"{nats_server.address}/echo"), outgoing())
    assert (answer.outcome, answer.detail) == (
        AttemptOutcome.REFUSED,
        "something answered that is not JetStream",
    )


@pytest.mark.usefixtures("own_processes")
async def test_a_login_is_used_and_its_rights_are_reported(
    tmp_path: Path, targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with running_nats(tmp_path, LOGINS) as server:
        async with server.client(user="maker", password="word") as client:
            await client.jetstream().add_stream(name="S", subjects=["S.>"])
        url = f"{server.address}/S.a"
        assert (
            await targets.send(Destination(url, Login("writer", "p@ss/word")), outgoing())
        ).outcome is AttemptOutcome.DELIVERED
        for login in (None, Login("writer", "wrong"), Login("a-token")):
            assert (
                await targets.send(Destination(url, login), outgoing())
            ).outcome is AttemptOutcome.DENIED
        forbidden = await targets.send(Destination(url, Login("reader", "word")), outgoing())
        assert forbidden.outcome is AttemptOutcome.DENIED
        assert forbidden.duration_seconds < 3


@pytest.mark.usefixtures("own_processes")
async def test_a_publisher_hears_at_once_that_its_server_died(
    tmp_path: Path, targets: Targets, outgoing: MakeOutgoing
) -> None:
    heard = asyncio.Event()

    async def hear(_message: object) -> None:
        heard.set()

    async with running_nats(tmp_path) as server, server.client() as client:
        await client.subscribe("silent", cb=hear)
        await client.flush()
        waiting = asyncio.create_task(
            targets.send(Destination(f"{server.address}/silent"), outgoing())
        )
        await heard.wait()
        await server.kill()
        answer = await waiting
    assert answer.outcome is AttemptOutcome.UNREACHABLE
    assert answer.duration_seconds < 3


async def test_no_address_is_spoken_to_that_subscribers_may_not_live_at(
    nats_server: Nats, outgoing: MakeOutgoing
) -> None:
    name = await stream(nats_server)
    async with Targets() as targets:
        for host in ("127.0.0.1", "localhost", "0x7f000001"):
            answer = await targets.send(
                Destination(f"nats+tls://{host}:{nats_server.port}/{name}.a"), outgoing()
            )
            assert answer.outcome is AttemptOutcome.ADDRESS_REFUSED
    assert await nats_server.stored(name) == []


async def test_what_must_be_encrypted_never_goes_out_in_the_clear(
    nats_server: Nats, targets: Targets, outgoing: MakeOutgoing
) -> None:
    name = await stream(nats_server)
    url = f"nats+tls://127.0.0.1:{nats_server.port}/{name}.a"
    answer = await targets.send(Destination(url, Login("user", "password")), outgoing())
    assert (answer.outcome, answer.detail) == (
        AttemptOutcome.UNREACHABLE,
        "the server does not encrypt",
    )


@pytest.mark.usefixtures("own_processes")
async def test_a_certificate_is_checked_against_the_name_in_the_url(
    tmp_path: Path, outgoing: MakeOutgoing
) -> None:
    await asyncio.to_thread(make_certificate, tmp_path)
    tls = f'tls {{ cert_file: "{tmp_path}/cert.pem", key_file: "{tmp_path}/key.pem" }}'
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    async with running_nats(tmp_path, tls) as server:
        url = f"nats+tls://localhost:{server.port}/nobody"
        async with Links(Dialler(LOOPBACK, tls_context=context), source="/test") as trusting:
            assert (
                await trusting.send(Destination(url), outgoing())
            ).outcome is AttemptOutcome.UNROUTABLE
            other_name = await trusting.send(
                Destination(url.replace("localhost", "127.0.0.1")), outgoing()
            )
            assert other_name.outcome is AttemptOutcome.CERTIFICATE_NOT_TRUSTED
        async with Links(Dialler(LOOPBACK), source="/test") as wary:
            answer = await wary.send(Destination(url), outgoing())
    assert answer.outcome is AttemptOutcome.CERTIFICATE_NOT_TRUSTED
    assert "self-signed" in answer.detail
