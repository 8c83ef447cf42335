"""A worker, or a notifier, stands still longer than its lease, also inside its transaction, and
then goes on as if nothing had been.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.soak.crew import Member
from tests.soak.server import SoakServer
from tests.soak.story import SHORT_LEASE, Story, told

_FROZEN_SECONDS = 1.2 * float(SHORT_LEASE["STATESVC_NOTIFIER_LEASE_SECONDS"])
"""Three leases of a worker."""
_TRIES = 400
_STANDING_SECONDS = 0.4
"""A transaction that idles for so long belongs to a process that does not move."""
_INSIDE = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'statesvc worker' AND xact_start IS NOT NULL AND wait_event = 'ClientRead'
    AND clock_timestamp() - state_change > interval '0.3 s'
"""
"""To the server a transaction whose client stopped in the middle of a pipeline is `active`, only
that it waits for the client.
"""


@pytest.mark.soak
async def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes(
    own_server: SoakServer, tmp_path: Path
) -> None:
    frozen: Counter[str] = Counter()
    async with told(
        "SIGSTOP past the lease", own_server.dsns, tmp_path, settings=SHORT_LEASE
    ) as story:
        async for number in story.rounds(shortest=3, longest=8):
            match number % 3:
                case 0:
                    where, victim = "worker inside its transaction", story.one_of("worker")
                    await _freeze_inside(story, victim)
                case 1:
                    where, victim = "worker anywhere", story.one_of("worker")
                    victim.freeze()
                case _:
                    where, victim = "notifier anywhere", story.one_of("notifier")
                    victim.freeze()
            frozen[where] += 1
            with story.disturbance(f"frozen {where}"):
                await asyncio.sleep(_FROZEN_SECONDS)
                victim.wake()
        story.notes.append(f"frozen: {dict(frozen)}")
    assert frozen["worker inside its transaction"] > 0


async def _freeze_inside(story: Story, victim: Member) -> None:
    """Freeze the worker inside a transaction: it is stopped, looked at, and let go again,
    until it is caught there.
    """
    for _ in range(_TRIES):
        await asyncio.sleep(story.rng.uniform(0.01, 0.2))
        victim.freeze()
        await asyncio.sleep(_STANDING_SECONDS)
        if (await story.execute(_INSIDE))[0][0]:
            return
        victim.wake()
    raise AssertionError("the worker was never caught inside a transaction")
