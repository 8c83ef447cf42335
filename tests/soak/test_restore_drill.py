"""Restore drill: under load the database goes back in time, is forked, and carriers push again what
was lost: every promise holds again.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from statesvc.database.migrator import migrate
from tests.soak.crew import Post
from tests.soak.story import SECONDS, Story, told
from tests.world import postgres
from tests.world.cluster import Cluster
from tests.world.feed_reader import FeedReader

POSTS: Final = (
    *[Post(role=role) for role in ("api", "worker", "worker", "notifier")],
    Post(role="sealer"),
)
POINT: Final = "before the loss"
LOST_SECONDS: Final = 10.0


@pytest.fixture
# a mark
async def cluster(own_processes: None, tmp_path: Path) -> AsyncIterator[Cluster]:  # noqa: ARG001
    (tmp_path / "cluster").mkdir()
    made = await asyncio.to_thread(Cluster, tmp_path / "cluster")
    try:
        await migrate(made.dsns.owner, made.dsns.listen, superuser_dsn=made.dsns.superuser)
        yield made
    finally:
        await asyncio.to_thread(made.stop)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_restore_to_a_point_in_time_under_load_keeps_every_promise(
    cluster: Cluster, tmp_path: Path
) -> None:
    server = postgres.Server(cluster.dsns.superuser or "", cluster.dsns.owner, cluster.dsns.service)
    settings = {"STATESVC_CHECKPOINT_PUBLISH": str(tmp_path / "outside")}
    async with told(
        "restore to a point in time", server, tmp_path, posts=POSTS, settings=settings
    ) as story:
        reader = FeedReader(_getter(story))
        await asyncio.sleep(SECONDS / 4)
        await asyncio.to_thread(cluster.base_backup)
        await asyncio.sleep(SECONDS / 4)
        await reader.read_on()
        story.ledger.cut()
        await asyncio.to_thread(cluster.mark, POINT)
        await asyncio.sleep(LOST_SECONDS)
        await reader.read_on()
        with story.disturbance("restored and forked"):
            await story.crew.halt()
            await asyncio.to_thread(cluster.restore, POINT)
            forked = await story.service.command("log", "fork", "--why", "a drill")
            await story.crew.start()
        assert "The log is in epoch 2" in forked
        given_up = await _forget_notifications(story)
        lost = story.ledger.forget()
        await story.carriers.push_again(lost)
        await asyncio.sleep(SECONDS / 4)
        await reader.read_on()
        anew = FeedReader(_getter(story))
        await anew.read_on()
        assert reader.entries == anew.entries[: len(reader.entries)]
        story.notes.append(
            f"lost: {len(lost):,} ACKs, {len(reader.lost):,} entries that a reader had seen,"
            f" {len(given_up):,} notifications sent"
        )
    assert lost
    assert reader.lost
    assert given_up
    assert not given_up & story.subscriber.said.keys()


def _getter(story: Story) -> Any:
    async def get(path: str, **parameters: str) -> tuple[int, Any]:
        async with story.service.session.get(
            f"{story.crew.api_url}{path}", params=parameters
        ) as answer:
            return answer.status, await answer.json()

    return get


async def _forget_notifications(story: Story) -> set[str]:
    """Return the notifications that the subscriber has and the restored database does not: their
    ids must never come again.
    """
    # taken before the look: what comes meanwhile is of the restored database
    said = set(story.subscriber.said)
    given_up = said - {
        row[0] for row in await story.execute("SELECT webhook_id FROM statesvc.notification")
    }
    story.subscriber.received = [each for each in story.subscriber.received if each not in given_up]
    for webhook_id in given_up:
        del story.subscriber.said[webhook_id]
    return given_up
