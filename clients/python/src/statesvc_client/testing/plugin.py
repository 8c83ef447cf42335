"""The fixtures. pytest loads this module wherever the client is installed, so it imports nothing
else until they are used.
"""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from statesvc_client.testing.service import Service

_START_SECONDS = 60
_STOP_SECONDS = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the fixtures take."""
    group = parser.getgroup("statesvc")
    group.addoption(
        "--statesvc-url",
        help="test against this running service (key: STATESVC_API_KEY) instead of an embedded one",
    )


@pytest.fixture(scope="session")
def statesvc_settings() -> Mapping[str, str]:
    """Return the environment of the embedded service, such as `STATESVC_WEBHOOK_SECRET_UPS`.
    Override it.
    """
    return {}


@pytest.fixture(scope="session")
def statesvc(
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    statesvc_settings: Mapping[str, str],
) -> "Iterator[Service]":
    """Yield a service, one for all tests of the run: each uses parcels of its own."""
    from statesvc_client.testing.service import Service

    if url := pytestconfig.getoption("--statesvc-url"):
        with contextlib.closing(Service(url, os.environ["STATESVC_API_KEY"])) as service:
            yield service
        return
    folder, port, key = tmp_path_factory.mktemp("statesvc"), _free_port(), secrets.token_urlsafe(32)
    given = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STATESVC_", "DATABASE_URL"))
    }
    settings = {
        "STATESVC_DATA_DIR": str(folder / "data"),
        "STATESVC_BOOTSTRAP_KEY": key,
        "STATESVC_SUBSCRIBER_ALLOW": "127.0.0.0/8",
        **statesvc_settings,
    }
    with (
        _running(port, given | settings, folder / "log"),
        contextlib.closing(
            Service(f"http://127.0.0.1:{port}", key, data_dir=folder / "data")
        ) as service,
    ):
        yield service


@contextlib.contextmanager
def _running(port: int, environment: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own service
            [sys.executable, "-m", "statesvc", "up", "--port", str(port)],
            env=dict(environment),
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"the service did not start:\n{log.read_text(errors='replace')[-3000:]}"
                )
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
