"""The team's fixtures: statesvc comes with its client's testing kit, a worker of
Celery's reads a real broker.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from kombu import Connection
from kombu.exceptions import OperationalError
from statesvc_client.testing import SECRET, Service

UPS_SECRET = "what UPS was given"


@pytest.fixture(scope="session", autouse=True)
def broker() -> None:
    """End at once, in one line, where no broker answers: each test would fail with Celery's
    retries.
    """
    url = django_settings.CELERY_BROKER_URL
    try:
        with Connection(url, connect_timeout=3) as connection:
            connection.ensure_connection(max_retries=1, timeout=3)
    except (OSError, OperationalError) as error:
        pytest.exit(f"no broker answers at {url} (BROKER_URL): {error}", returncode=1)


@pytest.fixture(scope="session")
def statesvc_settings() -> Mapping[str, str]:
    """Return the settings that the embedded service is started with."""
    return {
        "STATESVC_WEBHOOK_SECRET_UPS": UPS_SECRET,
        "STATESVC_WEBHOOK_SECRET_CLICKPOST": UPS_SECRET,
    }


@pytest.fixture
def shop(settings, statesvc: Service, live_server):  # noqa: ANN201 - pytest-django's
    """Run the shop, pointed at the service."""
    settings.STATESVC_URL, settings.STATESVC_API_KEY, settings.NOTIFICATION_SECRETS = (
        statesvc.url,
        statesvc.key,
        [SECRET],
    )
    return live_server


@pytest.fixture(scope="session")
def worker(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run a worker of Celery's, on the tests' database."""
    with (tmp_path_factory.mktemp("worker") / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "shop",
                "worker",
                "-P",
                "solo",
                "--without-gossip",
                "--without-mingle",
            ],
            env=os.environ | {"DATABASE_FILE": str(django_settings.DATABASES["default"]["NAME"])},
            cwd=Path(__file__).parents[1],
            stdout=log,
            stderr=log,
        )
    yield
    process.terminate()
    process.wait(20)
