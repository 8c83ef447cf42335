"""Runs `statesvc up` with a supervisor that asks its children more often:
`python -m tests.acceptance.impatient_up up ...`.
"""

import argparse
import sys
from typing import Final

from statesvc.cli import explained, up

ASK_SECONDS: Final = 1.0


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    up.configure(commands.add_parser("up"))
    options = parser.parse_args()
    return explained(lambda: up.run(options, ask_seconds=ASK_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
