"""The primary's machine is gone; its synchronous standby takes over, and the
service finds it by itself.
"""

from pathlib import Path

import pytest

from tests.soak.pair import pair_of_servers
from tests.soak.story import told


@pytest.mark.soak
async def test_a_failover_to_a_synchronous_standby_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with (
        pair_of_servers() as pair,
        told("failover to a synchronous standby", pair.dsns, tmp_path) as story,
    ):
        async for _ in story.rounds(shortest=15, longest=40):
            with story.disturbance("primary killed, standby promoted"):
                await pair.fail_over()
            # under load too: the next failover needs a standby again
            await pair.join()
