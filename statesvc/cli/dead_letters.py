"""`statesvc dead-letters ...`: what gave up and waits for a human. A replay by filter is its own (`dead_letter_actions`)."""

import argparse
import asyncio

from statesvc.cli import declared
from statesvc.cli.dead_letter_actions import configure_replay, run_replay


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    declared.add_declared(commands, "dead-letters")
    configure_replay(commands)


def run(options: argparse.Namespace) -> int:
    return (
        declared.run(options) if hasattr(options, "declared") else asyncio.run(run_replay(options))
    )
