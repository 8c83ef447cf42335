"""Where the calls of a command are answered: by a running service anywhere, or in its own process on the service's machine."""

import argparse
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from statesvc.cli.api_calls import Calls
from statesvc.cli.service_profile import Service, named_service


def calls_afar(options: argparse.Namespace) -> bool:
    """Whether a service was named to be called."""
    return _service(options) is not None


def _service(options: argparse.Namespace) -> Service | None:
    return named_service(url=options.service_url, key_file=options.key_file, profile=options.profile, environment=os.environ)


@asynccontextmanager
async def api_calls(options: argparse.Namespace) -> AsyncIterator[Calls]:
    """Those of the service that was named; otherwise they are made here. Standard error says which service, or which database."""
    service = _service(options)
    if service is not None:
        from statesvc.cli.remote_calls import RemoteCalls  # noqa: PLC0415 - loads TLS, which a command on the machine does not need

        sys.stderr.write(f"service: {service.url}\n")
        yield RemoteCalls(service)
        return
    from statesvc.cli.local_calls import local_calls  # noqa: PLC0415 - loads the database driver, which a call from afar does not need

    async with local_calls() as calls:
        yield calls
