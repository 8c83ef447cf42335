"""`statesvc ingress | api | worker | notifier | sealer`: a role in this process."""

import argparse
from pathlib import Path

from statesvc.cli.arguments import add_address
from statesvc.roles.launch import run_role
from statesvc.roles.runtime import Launch
from statesvc.settings.service_settings import load_settings

SHARING = frozenset({"ingress", "api"})


def configure(parser: argparse.ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument(
        "--wakeups",
        type=Path,
        metavar="FOLDER",
        help=(
            "folder over which the roles of one machine wake each other at once; else the database"
            " does"
        ),
    )
    role = parser.prog.rsplit(maxsplit=1)[-1]
    if role in SHARING:
        parser.add_argument(
            "--socket",
            type=Path,
            metavar="PATH",
            help=(
                "unix socket over which ingress and api of one machine hand connections to each"
                " other, so that one port serves both"
            ),
        )


def run(options: argparse.Namespace) -> int:
    settings = load_settings()
    port = settings.http.port if options.port is None else options.port
    return run_role(
        Launch(
            role=options.command,
            host=options.host or settings.http.host,
            port=port,
            settings=settings,
            socket=getattr(options, "socket", None),
            wakeups=options.wakeups,
        )
    )
