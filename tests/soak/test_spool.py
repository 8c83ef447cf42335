"""PostgreSQL is away again and again under carriers that push once: the spool keeps what they push."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.soak.crew import Post
from tests.soak.outages import AWAY, note_outages
from tests.soak.server import SoakServer
from tests.soak.story import CREW, Story, told
from tests.world.brokers import nats_cluster

AWAY_SECONDS = 20.0
NOTIFIED_SECONDS = 60.0
ROUNDS = int(os.environ.get("STATESVC_SOAK_ROUNDS", "10"))
POSTS = (*CREW, *[Post(role="ingress")] * 2)


async def be_away_again_and_again(story: Story, server: SoakServer) -> None:
    story.at_end.append(note_outages)
    for _ in range(ROUNDS):
        await asyncio.sleep(12)
        with story.disturbance(AWAY):
            await server.be_away(AWAY_SECONDS)
        await story.recovered(within_seconds=NOTIFIED_SECONDS)


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
        await be_away_again_and_again(story, own_server)
    all_acknowledged(story)


@pytest.mark.soak
async def test_the_stream_keeps_each_push_also_without_one_of_its_servers(
    own_server: SoakServer, tmp_path: Path
) -> None:
    servers = nats_cluster(tmp_path)
    await asyncio.gather(*(server.start() for server in servers))
    hosts = ",".join(server.address.removeprefix("nats://") for server in servers)
    try:
        async with told(
            "PostgreSQL killed for 20 s, a spool of three NATS servers, one of them killed",
            own_server.dsns,
            tmp_path,
            posts=POSTS,
            settings={"STATESVC_SPOOL_URL": f"nats://{hosts}/SPOOL"},
            tries_once=True,
        ) as story:
            await asyncio.sleep(10)
            with story.disturbance("a NATS server killed"):
                await servers[0].kill()
            await be_away_again_and_again(story, own_server)
        all_acknowledged(story)
    finally:
        for server in servers:
            await server.kill()
