"""`statesvc mcp`: an agent's tools on standard input and output, calls of a running service."""

import argparse
import asyncio

from statesvc.cli.command_error import CommandError
from statesvc.cli.service_profile import service_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-write",
        action="store_true",
        help="also offer calls that change something; each takes a `why`, for the log",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    service = service_of(options)
    if service is None:
        raise CommandError(
            "an agent acts for the holder of a key: name the service with --url and --key-file",
            exit_code=2,
        )
    try:
        from statesvc.addons.mcp.tool_server import serve  # noqa: PLC0415 - the SDK may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"mcp", "mcp_types"}:
            raise CommandError(
                "the SDK of the protocol is not installed: pip install 'statesvc[mcp]'",
                exit_code=2,
            ) from None
        raise
    asyncio.run(serve(service, allows_write=options.allow_write))
    return 0
