"""The machine of the service and of its database loses its power: what its disk was
not told to keep is gone.
"""

from pathlib import Path

import pytest

from tests.soak.server import soak_server
from tests.soak.story import told
from tests.world.disk import made_disk


@pytest.mark.soak
async def test_a_machine_that_loses_its_power_again_and_again_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with made_disk() as disk, soak_server(folder=disk.folder) as server:
        settings = {"STATESVC_SEALER_CHECKPOINT_FILE": str(disk.folder / "checkpoint")}
        async with told("power loss", server.dsns, tmp_path, settings=settings) as story:
            async for _ in story.rounds(shortest=15, longest=35):
                with story.disturbance("power lost"):
                    for member in story.crew.members:
                        if member.alive:
                            member.kill()
                    await server.lose_power(disk)
