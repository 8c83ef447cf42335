"""A person on call, or an agent, with an address and a key: no database, no master key, no data
folder of the service.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.test_taught_code import push, state

NUMBER = "AB1GB"
pytestmark = pytest.mark.slow


class Desk:
    """Another machine: an empty folder, and none of the service's settings."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self._url = folder, url
        (folder / "admin.key").write_text(BOOTSTRAP_KEY)

    def __call__(self, *arguments: str, key: str = "admin.key", exit_code: int = 0) -> str:
        given = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STATESVC_", "DATABASE_URL"))
        }
        ended = subprocess.run(
            [sys.executable, "-m", "statesvc", "--url", self._url, "--key-file", key, *arguments],
            cwd=self.folder,
            env={**given, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == exit_code, ended.stdout + ended.stderr
        # the answer of status names it
        assert (
            f"service: {self._url}\n" in ended.stderr
            or self._url in ended.stdout.partition("\n")[0]
        )
        return ended.stdout if exit_code == 0 else ended.stdout + ended.stderr

    def json(self, *arguments: str, **given: Any) -> Any:
        return json.loads(self(*arguments, "--json", **given))


async def test_the_runbook_and_a_dispute_work_with_a_key_alone(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    home, desk_folder = tmp_path / "service", tmp_path / "desk"
    home.mkdir()
    desk_folder.mkdir()
    service: Service = await service_maker(home)
    async with service:
        await service.start("api", "worker", "sealer")
        await push(service, NUMBER)
        desk = Desk(desk_folder, service.api.url)
        _teach(desk)
        assert await state(service, NUMBER) == "delivery_attempted"
        _look(desk)
        _dispute(desk)


def _teach(desk: Desk) -> None:
    (unknown,) = desk.json("carriers", "unmapped")
    assert unknown["raw_code"] == "EVZZ9"
    lesson = ("carriers", "map", "royalmail", "--code", "EVZZ9", "--status", "delivery_attempted")
    assert "1 event of 1 shipment" in desk(*lesson)
    assert "revision 1" in desk(*lesson, "--why", "their letter", "--yes")
    assert "1 message read again: 1 event corrected" in desk(
        "carriers", "renormalize", "royalmail", "1", "--why", "their letter"
    )
    assert desk("dead-letters", "list") == "No dead letter is open.\n"


def _look(desk: Desk) -> None:
    made = desk.json("keys", "create", "--name", "on call", "--scopes", "ops")
    (desk.folder / "ops.key").write_text(made["key"])
    assert "Running: 1 api" in desk("status", key="ops.key", exit_code=1)
    assert "No notification waits." in desk("queue", key="ops.key")
    assert "worker" in desk("workers", key="ops.key")
    assert "held" in desk("rollout", "hold", "royalmail", "--why", "a look", key="ops.key")
    assert "released" in desk("rollout", "release", "royalmail", key="ops.key")
    assert "takes a key with scope `admin`" in desk("keys", "list", key="ops.key", exit_code=1)
    used = {key["name"]: key["last_used_at"] for key in desk.json("keys", "list")}
    assert used["on call"] is not None
    desk("keys", "revoke", made["id"])


def _dispute(desk: Desk) -> None:
    desk("legal-hold", "place", "royalmail", NUMBER, "--why", "case 7")
    assert NUMBER in desk("legal-hold", "list")
    desk("evidence", "royalmail", NUMBER, "--out", "evidence.json")
    (key,) = desk.json("keys", "log")
    (desk.folder / "log.pub").write_text(key["key"])
    verified = subprocess.run(
        [
            sys.executable,
            "-m",
            "statesvc",
            "verify",
            "--bundle",
            "evidence.json",
            "--key",
            "log.pub",
        ],
        cwd=desk.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    desk("legal-hold", "release", "royalmail", NUMBER, "--why", "closed")
