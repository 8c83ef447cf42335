"""Environment of the numbers: the machine, its load, its disk, and how the server is set."""

import os
import platform
import sys
import sysconfig
import time
from importlib.metadata import version
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from tests.bench.report import percentile

SETTINGS: Final = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "jit",
    "data_checksums",
)
_FLUSHES: Final = 200


def machine() -> list[str]:
    """Describe the machine, one line a fact."""
    packages = ", ".join(
        f"{name} {version(name)}"
        for name in ("psycopg", "aiohttp", "uvloop", "cryptography", "orjson")
    )
    return [
        f"CPU: {_cpu()}, {os.cpu_count()} cores",
        f"{_interpreter()}, {packages}; {platform.system()} {platform.release()}",
    ]


def _interpreter() -> str:
    """Name the Python that runs, and how it was built."""
    is_distributed = sys.base_prefix == "/usr"
    flags = sysconfig.get_config_var("CONFIG_ARGS") or ""
    build = "" if is_distributed or "--enable-optimizations" in flags else "not "
    place = "of the distribution" if is_distributed else sys.base_prefix
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python} ({build}optimised, {place})"


def disk(folder: Path) -> str:
    """Measure how long it takes to write 8 kB to the folder's disk, for good."""
    flushes = _flushes(folder)
    return (
        f"fdatasync of 8 kB p50 {percentile(flushes, 0.5) * 1e3:.2f} ms, p99"
        f" {percentile(flushes, 0.99) * 1e3:.2f} ms"
    )


async def server_settings(superuser_dsn: str) -> str:
    """Return the settings that decide what durable means and what it costs."""
    async with await AsyncConnection.connect(superuser_dsn, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY (%s) ORDER BY"
            " name",
            (list(SETTINGS),),
        )
        return "PostgreSQL: " + ", ".join(
            f"{name} {value}" for name, value in await cursor.fetchall()
        )


def load() -> str:
    """Return the load averages, as `uptime` prints them."""
    return ", ".join(f"{average:.2f}" for average in os.getloadavg())


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _flushes(folder: Path) -> list[float]:
    path = folder / "flushes"
    seconds = []
    sync = getattr(os, "fdatasync", os.fsync)
    with path.open("wb", buffering=0) as file:
        for _ in range(_FLUSHES):
            file.seek(0)
            file.write(bytes(8192))
            started = time.perf_counter()
            sync(file.fileno())
            seconds.append(time.perf_counter() - started)
    path.unlink()
    return sorted(seconds)
