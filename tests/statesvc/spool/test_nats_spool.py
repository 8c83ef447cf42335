"""The stream of NATS keeps each message until it is settled, once, also without one of three servers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from events.crypto.keyring import Keyring
from statesvc.spool.nats_spool import NatsSpool
from statesvc.spool.spool import Portion, SpoolBounds, SpooledMessage, SpoolRefusedError
from tests.statesvc.spool.conftest import sealed
from tests.world.brokers import Nats, nats_cluster
from tests.world.waiting import until

pytestmark = pytest.mark.usefixtures("own_processes")
BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Nats]:
    server = Nats(tmp_path / "nats")
    await server.start()
    yield server
    await server.kill()


async def connected(url: str, bounds: SpoolBounds = BOUNDS) -> NatsSpool:
    spool = NatsSpool(url, bounds)
    await until(lambda: spool.refusal() is None)
    return spool


async def drained(spool: NatsSpool) -> list[SpooledMessage]:
    """Read and settle all, as a drain does."""
    (source,) = await spool.sources()
    found: list[SpooledMessage] = []
    place = 0
    while (portion := await source.read(place)) is not None:
        found += portion.messages
        place = portion.end
        await source.settle(place)
    assert (await source.depth(place)).messages == 0
    return found


async def patiently(spool: NatsSpool) -> list[SpooledMessage]:
    """Drain as soon as the servers that are left have a leader."""
    async with asyncio.timeout(30):
        while True:
            try:
                (source,) = await spool.sources()
                portion = await source.read(0)
                while portion is not None and (more := await source.read(portion.end)) is not None:
                    portion = Portion([*portion.messages, *more.messages], more.end)
            except OSError:
                await asyncio.sleep(0.5)
            else:
                return [] if portion is None else [*portion.messages]


async def test_messages_come_back_in_their_order_and_leave(server: Nats, keyring: Keyring) -> None:
    spool = await connected(f"{server.address}/SPOOL?replicas=1")
    messages = [sealed(keyring, str(number)) for number in range(300)]
    for message in messages:
        assert await spool.keep(message) == message.message.message_id
    seen = spool.waiting()
    (source,) = await spool.sources()
    for depth in (seen, await source.depth(0)):
        assert (depth.messages, depth.oldest_id) == (300, messages[0].message.message_id)
    assert await drained(spool) == messages
    assert await drained(spool) == []
    await spool.close()


async def test_a_retry_has_the_first_id_or_its_own_once_that_one_is_drained(
    server: Nats, keyring: Keyring
) -> None:
    spool = await connected(f"{server.address}/SPOOL?replicas=1")
    first, second, third = (sealed(keyring, "a") for _ in range(3))
    assert await spool.keep(first) == await spool.keep(second) == first.message.message_id
    assert await drained(spool) == [first]
    assert await spool.keep(third) == third.message.message_id
    assert await drained(spool) == [third]
    await spool.close()


async def test_a_full_stream_refuses(server: Nats, keyring: Keyring) -> None:
    bounds = SpoolBounds(bytes_max=6000, age_seconds_max=3600)
    spool = await connected(f"{server.address}/SPOOL?replicas=1", bounds)
    for number in range(3):
        await spool.keep(sealed(keyring, f"{number}" * 1000))
    with pytest.raises(SpoolRefusedError):
        await spool.keep(sealed(keyring, "a" * 2000))
    assert len(await drained(spool)) == 3
    await spool.keep(sealed(keyring, "x"))
    await spool.close()


async def test_without_its_server_it_refuses_at_once_and_goes_on_after_it(
    server: Nats, keyring: Keyring
) -> None:
    spool = await connected(f"{server.address}/SPOOL?replicas=1")
    first, last = sealed(keyring, "first"), sealed(keyring, "last")
    await spool.keep(first)
    await server.kill()
    await until(lambda: spool.refusal() is not None)
    with pytest.raises(SpoolRefusedError):
        await spool.keep(sealed(keyring, "refused"))
    assert await spool.sources() == []
    await server.start()
    await until(lambda: spool.refusal() is None)
    await spool.keep(last)
    assert await drained(spool) == [first, last]
    await spool.close()


async def test_a_stream_that_drops_messages_by_age_is_refused(server: Nats) -> None:
    await server.add_stream("SPOOL", ["SPOOL.kept", "SPOOL.refused"], max_age=60)
    spool = NatsSpool(f"{server.address}/SPOOL?replicas=1", BOUNDS)
    await until(lambda: spool.refusal() != "it is not connected yet")
    assert "drops messages" in (spool.refusal() or "")
    await spool.close()


async def test_without_one_of_three_servers_each_message_is_kept_once(
    tmp_path: Path, keyring: Keyring
) -> None:
    servers = nats_cluster(tmp_path)
    await asyncio.gather(*(server.start() for server in servers))
    hosts = ",".join(server.address.removeprefix("nats://") for server in servers)
    spool = await connected(f"nats://{hosts}/SPOOL")
    try:
        messages = [sealed(keyring, str(number)) for number in range(120)]
        keeping = []
        for number, message in enumerate(messages):
            keeping.append(asyncio.create_task(spool.keep(message)))
            await asyncio.sleep(0.01)
            if number == 40:
                await servers[0].kill()
        ids = await asyncio.gather(*keeping)
        assert ids == [message.message.message_id for message in messages]
        assert sorted(one.message.message_id for one in (await patiently(spool))) == sorted(ids)
    finally:
        await spool.close()
        for server in servers:
            await server.kill()
