"""`statesvc up`."""

import argparse
import asyncio
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import setproctitle

from statesvc.cli import explained
from statesvc.cli.arguments import add_address
from statesvc.cli.command_error import CommandError
from statesvc.roles.supervisor.child_plan import (
    ROLES,
    PortTakenError,
    ServicePlan,
    choose_ports,
    environment_of,
)
from statesvc.roles.supervisor.child_watch import ASK_SECONDS
from statesvc.roles.supervisor.preload import preload
from statesvc.roles.supervisor.supervise import up
from statesvc.roles.usable_settings import require_usable
from statesvc.seams import is_on, sentence
from statesvc.settings.service_settings import load_settings
from statesvc.telemetry.logs import configure_logging, log_format

DEMO_RATE = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument(
        "--demo", action="store_true", help="sample carriers push, a sample subscriber listens"
    )
    parser.add_argument(
        "--demo-rate",
        type=float,
        default=DEMO_RATE,
        metavar="N",
        help="pushes a second of the sample carriers (default: %(default)g)",
    )


def run(options: argparse.Namespace, *, ask_seconds: float = ASK_SECONDS) -> int:
    """Run everything until it is asked to stop.

    `ask_seconds`: between checks that the children live.
    """
    settings = load_settings()
    host = options.host or settings.http.host
    port = settings.http.port if options.port is None else options.port
    if options.demo and not 0 < options.demo_rate <= 10_000:
        raise CommandError("--demo-rate must lie between 0 and 10000", exit_code=2)
    if options.demo and not is_on("demo"):
        raise CommandError(sentence("demo", "--demo"), exit_code=2)
    require_usable(settings, host=host, port=port)
    configure_logging(
        process="up",
        output_format=log_format(settings.telemetry),
        level=settings.telemetry.log_level,
    )
    try:
        reserved = {fixed for _, fixed in settings.fixed_ports.values()}
        ports = choose_ports(host, port, ROLES, reserved=reserved)
    except PortTakenError as error:
        raise CommandError(str(error)) from error
    # it finds the place of a process's title by the environment, which changes now
    setproctitle.getproctitle()
    # not in the data directory: its path may be longer than that of a socket can be
    with TemporaryDirectory(prefix="statesvc-") as folder:
        plan = ServicePlan(
            host=host,
            ports=ports,
            socket=Path(folder, "api"),
            settings=settings,
            explained=explained,
            demo_rate=options.demo_rate if options.demo else None,
            ask_seconds=ask_seconds,
        )
        os.environ.update(environment_of(plan, os.environ))
        plan = replace(plan, settings=load_settings())
        preload()
        return asyncio.run(up(plan))
