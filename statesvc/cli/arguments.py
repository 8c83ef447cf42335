"""Arguments that several commands take."""

import argparse

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.cli.command_error import CommandError
from statesvc.http.unknown_carrier import no_such_carrier


def add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", help="address to listen on (default: STATESVC_HOST, else 127.0.0.1)"
    )
    parser.add_argument(
        "--port",
        type=_port,
        help="port to listen on, 0 for a free one (default: STATESVC_PORT, else 8080)",
    )


def carrier_named(carrier_id: str) -> Carrier:
    """Return the carrier. Raises CommandError for an unknown id."""
    carrier = CARRIERS.get(carrier_id)
    if carrier is None:
        raise CommandError(no_such_carrier(carrier_id, CARRIERS), exit_code=2)
    return carrier


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)
