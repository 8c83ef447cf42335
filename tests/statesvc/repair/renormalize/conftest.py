"""A worker whose carrier has candidates with planted faults."""

from dataclasses import replace

import pytest

from tests.statesvc.reading.planted import CARRIER
from tests.world.worker_harness import CARRIER_ID, WorkerHarness


@pytest.fixture
def harness(harness: WorkerHarness) -> WorkerHarness:
    harness.context = replace(harness.context, carriers={CARRIER_ID: CARRIER})
    return harness
