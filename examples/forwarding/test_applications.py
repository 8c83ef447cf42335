"""The two applications, behind uvicorn and gunicorn."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from statesvc_client.testing import SECRET, Service, signed_notification

from statesvc.addons.demo.sample_pushes import sample_push

FOLDER = Path(__file__).parent
SERVERS = {
    "fastapi_app": ("uvicorn", "--log-level", "error", "--port"),
    "flask_app": ("gunicorn", "--log-level", "error", "--bind"),
}
START_SECONDS = 30


@pytest.fixture(scope="session")
def statesvc_settings() -> Mapping[str, str]:
    return {"STATESVC_WEBHOOK_SECRET_UPS": "right", "STATESVC_WEBHOOK_SECRET_CLICKPOST": "right"}


@pytest.mark.parametrize("name", SERVERS)
def test_an_application_type_checks_strictly(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), f"{name}.py"]
    ended = subprocess.run(
        command, cwd=FOLDER, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stdout


@contextmanager
def served(name: str, statesvc: Service) -> Iterator[httpx.Client]:
    """Start the application, and return a client of it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    module, *options = SERVERS[name]
    where = str(port) if module == "uvicorn" else f"127.0.0.1:{port}"
    given = os.environ | {"STATESVC_URL": statesvc.url, "NOTIFICATION_SECRETS": SECRET}
    process = subprocess.Popen(
        [sys.executable, "-m", module, f"{name}:app", *options, where], cwd=FOLDER, env=given
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            deadline = time.monotonic() + START_SECONDS
            while not answers(client):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield client
    finally:
        process.terminate()
        process.wait(20)


def answers(client: httpx.Client) -> bool:
    try:
        client.get("/")
    except httpx.HTTPError:
        return False
    return True


@pytest.mark.parametrize(("name", "underscore"), [("fastapi_app", 200), ("flask_app", 401)])
def test_an_application_forwards_and_receives(
    name: str, underscore: int, statesvc: Service
) -> None:
    sample, sent = sample_push("ups", "delivered", at=datetime.now(UTC)), signed_notification()
    with served(name, statesvc) as client:
        assert (
            client.post(
                "/webhooks/ups", content=sample.body, headers={"credential": "wrong"}
            ).status_code
            == 401
        )
        assert (
            client.post(
                "/webhooks/ups", content=sample.body, headers={"credential": "right"}
            ).status_code
            == 200
        )
        assert (
            client.post(
                "/webhooks/clickpost", content=sample.body, headers={"webhook_key": "right"}
            ).status_code
            == underscore
        )
        assert (
            client.post("/notifications", content=sent.body, headers=dict(sent.headers)).status_code
            == 204
        )
        assert (
            client.post(
                "/notifications", content=sent.body + b" ", headers=dict(sent.headers)
            ).status_code
            == 401
        )
    statesvc.until(
        lambda: next(iter(statesvc.client.shipments.list(tracking_number=sample.number)), None)
    )
