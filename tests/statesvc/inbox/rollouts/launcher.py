"""Replays in a process of its own: `python -m tests.statesvc.inbox.rollouts.launcher ...`."""

import sys

from events.carriers import CARRIERS
from statesvc import cli
from tests.statesvc.inbox.rollouts.planted import CARRIER

if __name__ == "__main__":
    CARRIERS[CARRIER.carrier_id] = CARRIER
    sys.exit(cli.main())
