"""`statesvc dead-letters list | groups | show | replay | discard`: what gave up and waits for a human."""

import argparse

from statesvc.cli.dead_letters import discard_command as discard
from statesvc.cli.dead_letters import list_command as listing
from statesvc.cli.dead_letters import replay_command as replay

ACTIONS = {**listing.ACTIONS, "replay": replay.run, "discard": discard.run}


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list | groups | show | replay | discard")
    for module in (listing, replay, discard):
        module.configure(commands)


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    return ACTIONS[options.action](options)
