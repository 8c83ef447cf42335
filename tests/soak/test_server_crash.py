"""PostgreSQL is shut down as by a power cut, and recovers."""

from pathlib import Path

import pytest

from tests.soak.server import SoakServer
from tests.soak.story import told


@pytest.mark.soak
async def test_a_server_that_crashes_again_and_again_loses_and_doubles_nothing(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with told("immediate shutdown of PostgreSQL", own_server.dsns, tmp_path) as story:
        async for _ in story.rounds(shortest=20, longest=45):
            with story.disturbance("restart with immediate shutdown"):
                await own_server.crash()
