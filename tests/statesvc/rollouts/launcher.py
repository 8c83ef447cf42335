"""Runs `statesvc` with the planted carrier registered, for tests with real processes: `python -m tests.statesvc.rollouts.launcher ...`."""

import sys

from events.carriers import CARRIERS
from statesvc import cli
from tests.statesvc.rollouts.planted import CARRIER

if __name__ == "__main__":
    CARRIERS[CARRIER.carrier_id] = CARRIER
    sys.exit(cli.main())
