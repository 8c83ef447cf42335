"""`statesvc up`."""

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from statesvc.cli import main
from statesvc.cli.arguments import add_address
from statesvc.cli.command_error import CommandError
from statesvc.roles.supervisor.child_plan import ROLES, PortTakenError, ServicePlan, choose_ports
from statesvc.roles.supervisor.supervise import up
from statesvc.settings.service_settings import load_settings
from statesvc.telemetry.logs import configure_logging, log_format

DEMO_RATE = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_address(parser)
    parser.add_argument("--demo", action="store_true", help="sample carriers push, a sample subscriber listens")
    parser.add_argument("--demo-rate", type=float, default=DEMO_RATE, metavar="N", help="their pushes a second (default %(default)g)")


def run(options: argparse.Namespace) -> int:
    """Runs everything until it is asked to stop."""
    settings = load_settings()
    host = options.host or settings.http.host
    port = settings.http.port if options.port is None else options.port
    if options.demo and not 0 < options.demo_rate <= 10_000:
        raise CommandError("--demo-rate must lie between 0 and 10000", exit_code=2)
    configure_logging(process="up", output_format=log_format(settings.telemetry), level=settings.telemetry.log_level)
    try:
        ports = choose_ports(host, port, ROLES)
    except PortTakenError as error:
        raise CommandError(str(error)) from error
    demo_rate = options.demo_rate if options.demo else None
    # not in the data directory: its path may be longer than that of a socket can be
    with TemporaryDirectory(prefix="statesvc-") as folder:
        plan = ServicePlan(host=host, ports=ports, socket=Path(folder, "api"), settings=settings, entry=main, demo_rate=demo_rate)
        return asyncio.run(up(plan))
