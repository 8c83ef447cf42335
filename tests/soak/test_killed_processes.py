"""Workers, notifiers and the sealer die without a word every few seconds."""

from pathlib import Path

import pytest

from tests.soak.server import SoakServer
from tests.soak.story import SHORT_LEASE, told


@pytest.mark.soak
async def test_killed_workers_and_notifiers_lose_and_double_nothing(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with told(
        "SIGKILL of workers, notifiers and the sealer",
        own_server.dsns,
        tmp_path,
        settings=SHORT_LEASE,
    ) as story:
        async for _ in story.rounds(shortest=2, longest=8):
            victim = story.one_of("worker", "notifier", "sealer")
            with story.disturbance(f"{victim.post.role} killed"):
                victim.kill()
