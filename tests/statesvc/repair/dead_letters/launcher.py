"""Runs `statesvc` with the shop's carrier registered, for tests with real processes; with MENDED=1
its normalizer is mended.
"""

import os
import sys

from events.carriers import CARRIERS
from statesvc import cli
from tests.statesvc.repair.dead_letters.planted import MENDED
from tests.world.worker_harness import ACME


def main() -> int:
    CARRIERS[ACME.carrier_id] = MENDED if os.environ.get("MENDED") == "1" else ACME
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
