"""PostgreSQL is away again and again under carriers that push once: the spool keeps what they push."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import SpoolBounds, SpooledMessage
from tests.acceptance.processes import MASTER_KEY, until_false
from tests.soak.crew import Post
from tests.soak.outages import AWAY, acks_between, note_outages
from tests.soak.server import SoakServer
from tests.soak.story import CREW, SEED, Story, distinct, told
from tests.soak.traffic import traffic
from tests.world.brokers import Nats, nats_cluster

AWAY_SECONDS = 20.0
NOTIFIED_SECONDS = 60.0
ROUNDS = int(os.environ.get("STATESVC_SOAK_ROUNDS", "10"))
OLDER_BIN = os.environ.get("STATESVC_SOAK_OLDER_BIN")
FLOOD = int(os.environ.get("STATESVC_SOAK_FLOOD", "100000"))
POSTS = (*CREW, *[Post(role="ingress")] * 2)


async def be_away_again_and_again(story: Story, be_away: Callable[[], Awaitable[object]]) -> None:
    story.at_end.append(note_outages)
    for _ in range(ROUNDS):
        await asyncio.sleep(12)
        with story.disturbance(AWAY):
            await be_away()
        await story.caught_up(within_seconds=NOTIFIED_SECONDS)


def all_acknowledged(story: Story) -> None:
    refused = {
        status: count for status, count in story.carriers.sent.answers.items() if status != 200
    }
    assert refused == {}, "a carrier that pushes once has lost these"


@pytest.mark.soak
async def test_the_file_store_keeps_each_push_while_the_server_is_away(
    own_server: SoakServer, tmp_path: Path
) -> None:
    settings = {"STATESVC_SPOOL_URL": f"file://{tmp_path}/spool"}
    async with told(
        "PostgreSQL killed for 20 s, a spool of files",
        own_server.dsns,
        tmp_path,
        posts=POSTS,
        settings=settings,
        tries_once=True,
    ) as story:
        await be_away_again_and_again(story, lambda: own_server.be_away(AWAY_SECONDS))
    all_acknowledged(story)


@pytest.mark.soak
async def test_a_minor_upgrade_refuses_no_push(own_server: SoakServer, tmp_path: Path) -> None:
    """There and back again; without STATESVC_SOAK_OLDER_BIN it restarts with the same programs."""
    older = Path(OLDER_BIN) if OLDER_BIN else None
    await own_server.run_on(older)
    minors = cycle([None, older])
    async with told(
        "a minor upgrade, a spool of files",
        own_server.dsns,
        tmp_path,
        posts=POSTS,
        settings={"STATESVC_SPOOL_URL": f"file://{tmp_path}/spool"},
        tries_once=True,
    ) as story:
        await be_away_again_and_again(story, lambda: own_server.run_on(next(minors)))
    all_acknowledged(story)


@pytest.mark.soak
async def test_the_stream_keeps_each_push_also_without_one_of_its_servers(
    own_server: SoakServer, tmp_path: Path
) -> None:
    servers = nats_cluster(tmp_path)
    await asyncio.gather(*(server.start() for server in servers))
    hosts = ",".join(server.address.removeprefix("nats://") for server in servers)
    victims = cycle(servers)

    async def one_dies() -> None:
        """Kill each in turn in the middle of an outage."""
        victim: Nats = next(victims)
        await asyncio.sleep(AWAY_SECONDS / 4)
        await victim.kill()
        await asyncio.sleep(AWAY_SECONDS / 2)
        await victim.start()

    try:
        async with told(
            "PostgreSQL killed for 20 s, a spool of three NATS servers, one of them killed",
            own_server.dsns,
            tmp_path,
            posts=POSTS,
            settings={"STATESVC_SPOOL_URL": f"nats://{hosts}/SPOOL"},
            tries_once=True,
        ) as story:
            await be_away_again_and_again(
                story, lambda: asyncio.gather(own_server.be_away(AWAY_SECONDS), one_dies())
            )
        all_acknowledged(story)
    finally:
        for server in servers:
            await server.kill()


@pytest.mark.soak
async def test_a_flood_of_spooled_messages_delays_new_pushes_little(
    own_server: SoakServer, tmp_path: Path
) -> None:
    """An ingress has left a flood behind; those that run drain it beside new pushes."""
    folder = tmp_path / "spool"
    async with told(
        f"a flood of {FLOOD:,} spooled messages",
        own_server.dsns,
        tmp_path,
        posts=POSTS,
        settings={"STATESVC_SPOOL_URL": f"file://{folder}"},
        tries_once=True,
    ) as story:
        spool = await kept_flood(story, folder)
        await asyncio.sleep(20)
        left_at = time.monotonic()
        await spool.close()

        async def is_left() -> bool:
            # a drained journal of an ended process is removed with its folder
            return len(await asyncio.to_thread(os.listdir, folder)) > len(POSTS) - len(CREW)

        async with asyncio.timeout(1200):
            await until_false(is_left, pause_seconds=0.25)
        drained_at = time.monotonic()
        tries = story.carriers.sent.tries
        story.notes += [
            acks_between("undisturbed", tries, [(left_at - 20, left_at)]),
            acks_between("while it was drained", tries, [(left_at, drained_at)]),
        ]
    all_acknowledged(story)


async def kept_flood(story: Story, folder: Path) -> FileSpool:
    """Keep a flood that no running ingress drains until the spool is closed."""
    async with await AsyncConnection.connect(story.server.owner_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
    spool = FileSpool(folder, SpoolBounds(bytes_max=1024**3, age_seconds_max=3600))
    bodies = islice(distinct(traffic(SEED + 1, keyring.carrier_digest)), FLOOD)
    while group := [*islice(bodies, 200)]:
        kept = [
            spool.keep(
                SpooledMessage(
                    seal_message(keyring, one.carrier_id, one.body, "{}"), datetime.now(UTC)
                )
            )
            for one in group
        ]
        for one, message_id in zip(group, await asyncio.gather(*kept), strict=True):
            story.ledger.note(one, message_id=str(message_id), duplicate=None)
        await asyncio.sleep(0.05)
    return spool
