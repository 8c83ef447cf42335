"""Choice of a command's calls: a running service anywhere, or this process."""

import argparse
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from statesvc.cli.api_calls import Calls, ServiceAwayError
from statesvc.cli.service_profile import Service, named_service


def calls_afar(options: argparse.Namespace) -> bool:
    return service_of(options) is not None


def service_of(options: argparse.Namespace) -> Service | None:
    """Return the service that was named to be called; None: none was."""
    return named_service(
        url=options.service_url,
        key_file=options.key_file,
        profile=options.profile,
        environment=os.environ,
    )


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
        from statesvc.cli.remote_calls import RemoteCalls  # noqa: PLC0415 - loads TLS, which a command on the machine does not need

        if not is_finding:
            sys.stderr.write(f"service: {service.url}\n")
        yield RemoteCalls(service)
        return
    from statesvc.cli.local_calls import local_calls  # noqa: PLC0415 - loads the database driver, which a call from afar does not need

    async with local_calls(is_finding=is_finding) as calls:
        yield calls


@dataclass(frozen=True, slots=True)
class Away:
    """The silent service or database (as `Calls.named`), with the consequence in a sentence."""

    named: Mapping[str, str]
    trouble: Mapping[str, Any]


def away(error: Exception, options: argparse.Namespace) -> Away | None:
    """Return the silent party; None: the error has another cause."""
    service = service_of(options)
    if service is None:
        from statesvc.cli.local_calls import away_database  # noqa: PLC0415 - as above

        database = away_database(error)
        if database is None:
            return None
        name, why = database
        text = f"the database is away: no push is acknowledged, and nothing is processed ({why})"
        return Away({"database": name}, _trouble("database", text))
    return (
        Away({"service": service.url}, _trouble("service", str(error)))
        if isinstance(error, ServiceAwayError)
        else None
    )


def _trouble(about: str, text: str) -> Mapping[str, Any]:
    return {
        "urgency": "now",
        "about": about,
        "text": text,
        "page": "docs/runbook/AckAvailability.md",
    }
