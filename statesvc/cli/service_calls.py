"""Choice of a command's calls: a running service anywhere, or this process."""

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from statesvc.cli.api_calls import Calls
from statesvc.cli.service_profile import service_of


@asynccontextmanager
async def api_calls(
    options: argparse.Namespace, *, is_finding: bool = False
) -> AsyncIterator[Calls]:
    """Open the calls of the named service, otherwise in this process.

    Standard error names the service or database. `is_finding`: for commands that look for
    faults, for which a silent database is an answer, too, and the answer names it.
    """
    service = service_of(options)
    if service is not None:
        # loads TLS, which a command on the machine does not need
        from statesvc.cli.remote_calls import RemoteCalls  # noqa: PLC0415

        if not is_finding:
            sys.stderr.write(f"service: {service.url}\n")
        yield RemoteCalls(service)
        return
    # loads the database driver, which a call from afar does not need
    from statesvc.cli.local_calls import local_calls  # noqa: PLC0415

    async with local_calls(is_finding=is_finding) as calls:
        yield calls
