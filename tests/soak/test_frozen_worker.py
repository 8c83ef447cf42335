"""A worker stands still longer than its lease, half of the time inside its transaction, and then goes on as if nothing had been."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.soak.crew import Member
from tests.soak.server import SoakServer
from tests.soak.story import SHORT_LEASE, Story, told

_FROZEN_SECONDS = 1.5 * float(SHORT_LEASE["STATESVC_WORKER_LEASE_SECONDS"])
_TRIES = 400
_STANDING_SECONDS = 0.4
"""A transaction that idles for so long belongs to a process that does not move."""
_INSIDE = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'statesvc worker' AND state = 'idle in transaction' AND clock_timestamp() - state_change > interval '0.3 s'
"""


@pytest.mark.soak
async def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes(own_server: SoakServer, tmp_path: Path) -> None:
    frozen: Counter[str] = Counter()
    async with told("SIGSTOP of a worker past its lease", own_server.dsns, tmp_path, settings=SHORT_LEASE) as story:
        async for number in story.rounds(shortest=3, longest=8):
            victim = story.one_of("worker")
            if number % 2:
                await _freeze_inside(story, victim)
                where = "inside its transaction"
            else:
                victim.freeze()
                where = "anywhere"
            frozen[where] += 1
            with story.disturbance(f"frozen {where}"):
                await asyncio.sleep(_FROZEN_SECONDS)
                victim.wake()
        story.notes.append(f"frozen: {dict(frozen)}")
    assert frozen["inside its transaction"] > 0


async def _freeze_inside(story: Story, victim: Member) -> None:
    """Leaves the worker frozen inside a transaction: it is stopped, looked at, and let go again, until it is caught there."""
    for _ in range(_TRIES):
        await asyncio.sleep(story.rng.uniform(0.01, 0.2))
        victim.freeze()
        await asyncio.sleep(_STANDING_SECONDS)
        if (await story.execute(_INSIDE))[0][0]:
            return
        victim.wake()
    raise AssertionError("the worker was never caught inside a transaction")
