"""The server ends connections of the service at random, the one that listens among them."""

from pathlib import Path

import pytest

from tests.soak.server import SoakServer
from tests.soak.story import told

_ALL = (
    "SELECT pid, application_name FROM pg_stat_activity WHERE application_name LIKE 'statesvc %%'"
    " ORDER BY pid"
)


@pytest.mark.soak
async def test_terminated_backends_lose_and_double_nothing(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with told(
        "pg_terminate_backend of random connections", own_server.dsns, tmp_path
    ) as story:
        async for number in story.rounds(shortest=0.5, longest=3):
            backends = await story.execute(_ALL)
            listening = [backend for backend in backends if backend[1] == "statesvc listener"]
            pool = listening if number % 5 == 0 and listening else backends
            chosen = story.rng.sample(pool, k=min(len(pool), story.rng.randint(1, 4)))
            with story.disturbance(", ".join(sorted({str(name) for _, name in chosen}))):
                await story.execute(
                    "SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid",
                    [pid for pid, _ in chosen],
                )
