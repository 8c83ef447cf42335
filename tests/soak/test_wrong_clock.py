"""Workers, a notifier and a sealer with clocks an hour fast or slow, beside others whose clocks are
right; workers die now and then.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.soak.crew import Post
from tests.soak.server import SoakServer
from tests.soak.story import SHORT_LEASE, told

_SHIFTED = (sys.executable, "-m", "tests.soak.shifted")
_FAST = {"STATESVC_TEST_CLOCK_SECONDS": "3600"}
_SLOW = {"STATESVC_TEST_CLOCK_SECONDS": "-3600"}
_POSTS = (
    Post(role="api"),
    Post(role="worker"),
    Post(role="worker", program=_SHIFTED, settings=_FAST),
    Post(role="worker", program=_SHIFTED, settings=_SLOW),
    Post(role="notifier"),
    Post(role="notifier", program=_SHIFTED, settings=_FAST),
    Post(role="sealer", program=_SHIFTED, settings=_SLOW),
)
_TIMES = """
SELECT min(t.at), max(t.at) FROM (
    SELECT recorded_at FROM statesvc.event UNION ALL SELECT recorded_at FROM statesvc.attempt UNION ALL
    SELECT started_at FROM statesvc.open_attempt UNION ALL SELECT settled_at FROM statesvc.message UNION ALL
    SELECT sealed_at FROM statesvc.sealed_batch
) AS t(at)
"""


@pytest.mark.soak
async def test_a_clock_an_hour_off_moves_no_lease_no_retry_and_no_time_in_the_log(
    own_server: SoakServer, tmp_path: Path
) -> None:
    started = datetime.now(UTC)
    async with told(
        "clocks an hour off", own_server.dsns, tmp_path, posts=_POSTS, settings=SHORT_LEASE
    ) as story:
        async for _ in story.rounds(shortest=10, longest=25):
            victim = story.one_of("worker")
            with story.disturbance(
                "worker killed, clock"
                f" {victim.post.settings.get('STATESVC_TEST_CLOCK_SECONDS', 'right')}"
            ):
                victim.kill()
        first, last = (await story.execute(_TIMES))[0]
        workers = await story.execute("SELECT count(DISTINCT worker) FROM statesvc.message")
        story.notes.append(
            f"times in the log from {first} to {last}; {workers[0][0]} workers settled messages"
        )
        assert isinstance(first, datetime)
        assert isinstance(last, datetime)
        assert (
            started - timedelta(seconds=5)
            <= first
            <= last
            <= datetime.now(UTC) + timedelta(seconds=5)
        )
