"""The journey of a team with Django and Celery: `python -m tests.journeys.django_team` runs the
tests of `examples/django`.

Against a real RabbitMQ and a real Redis in turn, with Django, Celery and the client's
testing kit in an environment of their own (`.ci/run` makes it). Prints what was measured;
exit code 1: a test failed.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.journeys.installation import ROOT, FailedStepError, main
from tests.world.brokers import running_rabbitmq, running_redis

ENVIRONMENT: Final = Path("/opt/django")
EXAMPLE: Final = ROOT / "examples" / "django"
TEST_SECONDS_MAX: Final = 120


@asynccontextmanager
async def brokers(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Run both brokers; yield their addresses by name."""
    async with (
        running_rabbitmq(folder / "rabbitmq") as rabbitmq,
        running_redis(folder / "redis") as redis,
    ):
        yield {"rabbitmq": f"{rabbitmq.address}/", "redis": redis.address}


async def run_tests(folder: Path) -> dict[str, object]:
    """Run them once for each broker."""
    measured: dict[str, object] = {}
    async with brokers(folder) as addresses:
        for name, address in addresses.items():
            began = time.monotonic()
            given = os.environ | {
                "BROKER_URL": address,
                "DATABASE_FILE": str(folder / f"{name}.sqlite3"),
            }
            command: list[str | Path] = [
                ENVIRONMENT / "bin" / "python",
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                EXAMPLE,
            ]
            tests = await asyncio.create_subprocess_exec(
                *command, cwd=EXAMPLE, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            async with asyncio.timeout(TEST_SECONDS_MAX):
                printed, _ = await tests.communicate()
            if tests.returncode:
                raise FailedStepError(f"on {name}: {printed.decode(errors='replace')[-6000:]}")
            measured[name] = printed.decode().strip().splitlines()[-1]
            measured[f"{name}_seconds"] = round(time.monotonic() - began, 1)
    return measured


def travel() -> dict[str, object]:
    with TemporaryDirectory(prefix="django-") as folder:
        return asyncio.run(run_tests(Path(folder)))


if __name__ == "__main__":
    sys.exit(main(travel))
