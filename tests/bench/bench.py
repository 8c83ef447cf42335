"""Common tools of every part: the server, the scale, a folder, and children that answer with
JSON.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.acceptance.processes import Service
from tests.bench.scale import Scale
from tests.bench.server import BenchServer, Place

ROOT: Final = Path(__file__).parents[2]


class ChildError(RuntimeError):
    """A child of the bench failed; the message is the end of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One run of the program."""

    server: BenchServer
    scale: Scale
    folder: Path

    def service(self, place: Place, **settings: str) -> Service:
        """Return the service's processes on a database; not started yet."""
        open_doors = {
            "STATESVC_WEBHOOK_SECRET_UPS": None,
            "STATESVC_LOG_LEVEL": "warning",
            "STATESVC_API_CALLS_PER_KEY_PER_SECOND": "100000",
        }
        return Service(
            service_dsn=place.service,
            owner_dsn=place.owner,
            folder=self.folder,
            settings={**open_doors, **settings},
        )

    def say(self, text: str) -> None:
        """Print progress, next to the results."""
        sys.stderr.write(f"  {text}\n")
        sys.stderr.flush()


async def child(module: str, *arguments: str, told: Any = None, python: Path | None = None) -> Any:
    """Run a module of this package in a process of its own; its standard output is
    JSON. Raises `ChildError`.
    """
    process = await asyncio.create_subprocess_exec(
        *(str(python or sys.executable), "-m", f"tests.bench.{module}", *arguments),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, complaints = await process.communicate(json.dumps(told).encode())
    if process.returncode != 0:
        raise ChildError(f"{module}: {_tail(complaints.decode(errors='replace'))}")
    return json.loads(output)


def _tail(text: str, lines: int = 12) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Return the names from another start, so that no contender always runs first."""
    return [*names[by % len(names) :], *names[: by % len(names)]]
