"""Runs `statesvc` with the planted carrier registered, for tests with real processes: `python -m tests.statesvc.rollouts.launcher ...`."""

import sys
from importlib import import_module

from events.carriers import CARRIERS
from statesvc import cli
from tests.statesvc.rollouts.planted import CARRIER

if __name__ == "__main__":
    CARRIERS[CARRIER.carrier_id] = CARRIER
    if sys.argv[1] == "renormalize" and "renormalize" not in cli.COMMANDS:
        import argparse

        module = import_module("statesvc.cli.renormalize")
        parser = argparse.ArgumentParser()
        module.configure(parser)
        sys.exit(module.run(parser.parse_args(sys.argv[2:])))
    sys.exit(cli.main())
