"""`python -m tests.soak.shifted ROLE ...`: the service, its wall clock off by
STATESVC_TEST_CLOCK_SECONDS, its monotonic clock right.
"""

import os
import sys
from datetime import UTC, datetime, timedelta

import freezegun

from statesvc.cli import main
from statesvc.roles import api_role as api
from statesvc.roles import notifier_role as notifier
from statesvc.roles import sealer_role as sealer
from statesvc.roles import worker_role as worker

_ROLES = (api, notifier, sealer, worker)
"""Loaded before the clock is moved, so that it is moved in their modules too."""


def run() -> int:
    """Run with the same arguments as `statesvc`."""
    shift = timedelta(seconds=float(os.environ.pop("STATESVC_TEST_CLOCK_SECONDS")))
    with freezegun.freeze_time(datetime.now(UTC) + shift, tick=True, real_asyncio=True):
        return main()


if __name__ == "__main__":
    sys.exit(run())
