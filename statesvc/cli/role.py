"""`statesvc api | worker | notifier | sealer`: one role in this process."""

import argparse

from statesvc.roles.launch import run_role
from statesvc.roles.runtime import Launch
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    add_address(parser)


def add_address(parser: argparse.ArgumentParser) -> None:
    """Where to listen."""
    parser.add_argument("--host", help="address to listen on (default: STATESVC_HOST, else 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="port to listen on, 0 for a free one (default: STATESVC_PORT, else 8080)")


def run(options: argparse.Namespace) -> int:
    """Runs the role until told to stop."""
    settings = load_settings()
    port = settings.http.port if options.port is None else options.port
    return run_role(Launch(role=options.command, host=options.host or settings.http.host, port=port, settings=settings))


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)
