"""The fixtures of the service's own tests."""

from dataclasses import replace

import pytest

from events.carriers import CARRIERS
from tests.world.shell import use
from tests.world.worker_harness import WorkerHarness


@pytest.fixture
def royal(harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch) -> WorkerHarness:
    """Make a shop of the real carriers, and commands with its keys."""
    use(harness.database, monkeypatch)
    harness.context = replace(harness.context, carriers=CARRIERS)
    return harness
