"""Replays in a process of its own: `python -m tests.statesvc.reading.launcher ...`."""

import sys

from events.carriers import CARRIERS
from statesvc import cli
from tests.statesvc.reading.planted import CARRIER


def main() -> int:
    CARRIERS[CARRIER.carrier_id] = CARRIER
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
