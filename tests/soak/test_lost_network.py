"""The network between service and server goes away for ten seconds, again and again, in the three
ways in which networks do.
"""

import asyncio
from pathlib import Path

import pytest

from tests.soak.proxy import proxy_to
from tests.soak.server import SoakServer, on_tcp
from tests.soak.story import SECONDS, told

_AWAY_SECONDS = min(10.0, SECONDS / 6)


@pytest.mark.soak
async def test_a_network_that_goes_away_loses_and_doubles_nothing(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with (
        proxy_to(own_server.port) as proxy,
        told(
            "connection lost for 10 s",
            own_server.dsns,
            tmp_path,
            seen_as=on_tcp(own_server.dsns, str(proxy.port)),
        ) as story,
    ):
        async for number in story.rounds(shortest=10, longest=25):
            match number % 3:
                case 0:
                    with story.disturbance("cut"):
                        proxy.cut()
                        await asyncio.sleep(_AWAY_SECONDS)
                        proxy.heal()
                case 1:
                    with story.disturbance("stalled, then all of it arrives"):
                        proxy.stall()
                        await asyncio.sleep(_AWAY_SECONDS)
                        proxy.heal()
                case _:
                    with story.disturbance("stalled, then reset"):
                        proxy.stall()
                        await asyncio.sleep(_AWAY_SECONDS)
                        proxy.reset()
                        proxy.heal()
