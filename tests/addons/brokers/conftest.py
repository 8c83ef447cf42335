"""Real brokers, one of each for all tests of a module, and targets that may reach them."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from uuid import uuid4

import pytest
import pytest_asyncio

from statesvc.delivery.outgoing import Outgoing
from statesvc.delivery.signing import signed_headers
from statesvc.delivery.targets import Targets
from tests.statesvc.notifier.conftest import keyring, master_key, receiver, world
from tests.world.brokers import Nats, RabbitMq, running_nats, running_rabbitmq

__all__ = ["keyring", "master_key", "receiver", "world"]

LOOPBACK = (ip_network("127.0.0.0/8"),)
SECRET = b"a secret of 32 bytes for testing"

MakeOutgoing = Callable[..., Outgoing]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_server(
    own_processes: None,  # noqa: ARG001 - a mark
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Nats]:
    async with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rabbitmq_server(
    own_processes: None,  # noqa: ARG001 - a mark
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RabbitMq]:
    async with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def targets() -> AsyncIterator[Targets]:
    async with Targets(allowed=LOOPBACK, connect_seconds=2, total_seconds=5) as targets:
        yield targets


@pytest.fixture
def outgoing() -> MakeOutgoing:
    def make(
        sequence: int = 1,
        body: bytes = b'{"type":"shipment.status_changed"}',
        webhook_id: str | None = None,
    ) -> Outgoing:
        at = datetime.now(UTC)
        webhook_id = webhook_id or f"n1-{uuid4().hex}"
        return Outgoing(
            webhook_id=webhook_id,
            type="shipment.status_changed",
            at=at,
            subject=str(uuid4()),
            sequence=sequence,
            body=body,
            headers=signed_headers(
                [SECRET], webhook_id=webhook_id, timestamp=int(at.timestamp()), body=body
            ),
        )

    return make
