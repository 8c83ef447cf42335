"""One connection for each target: opened once for all who wait, given up when it is dumb, opened
again, closed when idle.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from statesvc.addons.brokers import table
from statesvc.addons.brokers.kit import (
    BrokerUrl,
    CloudEvent,
    ConnectionLostError,
    Dialler,
    PublishRefusedError,
    cloud_event,
)
from statesvc.addons.brokers.links import Links
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Destination, Login, Outgoing

OUTGOING = Outgoing(
    webhook_id="n1-1",
    type="t",
    at=datetime(2026, 3, 1, tzinfo=UTC),
    subject="s",
    sequence=1,
    body=b"{}",
    headers={},
)


@dataclass
class FakeConnection:
    """Confirms at once, unless set otherwise."""

    answer: Callable[[], Any] | None = None
    is_open: bool = True
    published: list[str] = field(default_factory=list)

    async def publish(self, event: CloudEvent) -> str:
        self.published.append(event.id)
        return "stored" if self.answer is None else await self.answer()

    async def close(self) -> None:
        self.is_open = False


@dataclass
class FakeClient:
    """A broker's module; each `connect` is let through by `connecting`."""

    connections: list[FakeConnection] = field(default_factory=list)
    logins: list[Login | None] = field(default_factory=list)
    connecting: Callable[[], Any] | None = None
    answer: Callable[[], Any] | None = None

    def check(self, url: BrokerUrl, login: Login | None) -> None:
        """Accept all."""

    async def connect(
        self, _url: BrokerUrl, login: Login | None, _dialler: Dialler
    ) -> FakeConnection:
        self.logins.append(login)
        if self.connecting is not None:
            await self.connecting()
        connection = FakeConnection(self.answer)
        self.connections.append(connection)
        return connection


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    client = FakeClient()
    monkeypatch.setattr(table.Broker, "client", lambda _broker: client)
    return client


def target(name: str = "a") -> Destination:
    return Destination(f"nats+tls://broker.invalid/{name}")


def links(**bounds: Any) -> Links:
    return Links(Dialler(), source="/test", **bounds)


async def never() -> None:
    await asyncio.Event().wait()


async def test_other_targets_and_logins_have_their_own(client: FakeClient) -> None:
    async with links() as ours:
        for destination in (
            target("a"),
            target("b"),
            Destination(target("a").url, Login("u", "p")),
        ):
            await ours.send(destination, OUTGOING)
        assert client.logins == [None, None, Login("u", "p")]


async def test_failures_to_connect_reach_all_and_the_next_try_connects_again(
    client: FakeClient,
) -> None:
    async def refuse() -> None:
        raise ConnectionRefusedError

    client.connecting = refuse
    async with links() as ours:
        answers = await asyncio.gather(*(ours.send(target(), OUTGOING) for _ in range(5)))
        assert {answer.outcome for answer in answers} == {AttemptOutcome.CONNECTION_REFUSED}
        assert len(client.logins) == 1
        await ours.send(target(), OUTGOING)
        assert len(client.logins) == 2


async def test_whoever_gets_no_answer_gives_the_connection_up_unless_others_do(
    client: FakeClient,
) -> None:
    client.answer = never
    async with links(total_seconds=0.05) as ours:
        assert (await ours.send(target(), OUTGOING)).outcome is AttemptOutcome.TIMED_OUT
        client.answer = None
        assert (await ours.send(target(), OUTGOING)).outcome is AttemptOutcome.DELIVERED
        assert [connection.is_open for connection in client.connections] == [False, True]
        (_, alive) = client.connections
        alive.answer = never
        slow = asyncio.create_task(ours.send(target(), OUTGOING))
        await asyncio.sleep(0.01)
        alive.answer = None
        assert (await ours.send(target(), OUTGOING)).outcome is AttemptOutcome.DELIVERED
        assert (await slow).outcome is AttemptOutcome.TIMED_OUT
        assert alive.is_open


async def test_connecting_has_its_own_bound(client: FakeClient) -> None:
    client.connecting = never
    async with links(connect_seconds=0.02, total_seconds=5) as ours:
        answer = await ours.send(target(), OUTGOING)
        assert answer.outcome is AttemptOutcome.TIMED_OUT
        assert answer.duration_seconds < 2


@pytest.mark.parametrize(
    ("error", "outcome", "detail"),
    [
        (
            PublishRefusedError(AttemptOutcome.UNROUTABLE, "no queue"),
            AttemptOutcome.UNROUTABLE,
            "no queue",
        ),
        (ConnectionLostError(), AttemptOutcome.UNREACHABLE, ""),
        (OSError(), AttemptOutcome.UNREACHABLE, ""),
        (EOFError(), AttemptOutcome.UNREACHABLE, ""),
        (ValueError("a defect of a client"), AttemptOutcome.UNREACHABLE, ""),
    ],
)
async def test_no_failure_of_a_client_is_an_exception(
    client: FakeClient, error: Exception, outcome: AttemptOutcome, detail: str
) -> None:
    async def fail() -> None:
        raise error

    client.answer = fail
    async with links() as ours:
        answer = await ours.send(target(), OUTGOING)
    assert (answer.outcome, answer.detail, answer.response) == (outcome, detail, detail.encode())


async def test_a_refusal_keeps_the_connection(client: FakeClient) -> None:
    async def refuse() -> None:
        raise PublishRefusedError(AttemptOutcome.NOT_STORED, "full")

    client.answer = refuse
    async with links() as ours:
        await ours.send(target(), OUTGOING)
        await ours.send(target(), OUTGOING)
        assert len(client.connections) == 1


async def test_idle_connections_are_closed(client: FakeClient) -> None:
    async with links(idle_seconds=0.02) as ours:
        await ours.send(target(), OUTGOING)
        async with asyncio.timeout(5):
            while client.connections[0].is_open:  # noqa: ASYNC110 - a timer closes it
                await asyncio.sleep(0.005)
        assert ours.open_count == 0
        assert (await ours.send(target(), OUTGOING)).outcome is AttemptOutcome.DELIVERED


async def test_one_in_use_is_not_idle(client: FakeClient) -> None:
    client.answer = never
    async with links(idle_seconds=0.01, total_seconds=0.1) as ours:
        slow = asyncio.create_task(ours.send(target(), OUTGOING))
        await asyncio.sleep(0.05)
        assert ours.open_count == 1
        await slow


async def test_there_are_never_more_than_the_bound_the_longest_idle_gives_way(
    client: FakeClient,
) -> None:
    async with links(links_max=3) as ours:
        names = [random.choice("abcdef") for _ in range(40)]
        for name in names:
            await ours.send(target(name), OUTGOING)
            assert ours.open_count <= 3
        latest = list(dict.fromkeys(reversed(names)))[:3]
        before = len(client.connections)
        for name in latest:
            await ours.send(target(name), OUTGOING)
        assert len(client.connections) == before


def test_sequences_sort_as_text_as_they_do_as_numbers() -> None:
    numbers = [1, 2, 9, 10, 11, 99, 100, 2**31 - 1]
    sequences = [
        cloud_event(replace(OUTGOING, sequence=number), source="s").attributes["sequence"]
        for number in numbers
    ]
    assert sequences == sorted(sequences)
    assert [int(text) for text in sequences] == numbers
    assert "sequence" not in cloud_event(replace(OUTGOING, sequence=None), source="s").attributes
