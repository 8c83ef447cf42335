"""A misspelt argument of the Python client is found: by mypy, or when the call is made."""

import asyncio
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from tests.clients.faulty_server import FaultyServer, answer
from tests.clients.planted_errors import PLANTED

pytestmark = pytest.mark.usefixtures("installed_client")

HEAD: Final = "from uuid import UUID\nfrom statesvc_client import Client\nclient = Client('http://a.example')\n"


@pytest.mark.usefixtures("own_processes")
def test_mypy_finds_each_planted_error(installed_client: Path, tmp_path: Path) -> None:
    program = tmp_path / "planted.py"
    program.write_text(HEAD + "\n".join(call for call, _ in PLANTED.values()))
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, program],
        env={**os.environ, "MYPYPATH": str(installed_client)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
        cwd=tmp_path,
    )
    lines = {int(line) for line in re.findall(r"planted\.py:(\d+): error", ended.stdout)}
    first = HEAD.count("\n") + 1
    assert lines == set(range(first, first + len(PLANTED))), ended.stdout
    assert "in 1 file" in ended.stdout, ended.stdout


@pytest.fixture
def client_class() -> Any:
    return importlib.import_module("statesvc_client").Client


def test_an_unknown_argument_raises_and_proposes_one(client_class: Any) -> None:
    with client_class("http://127.0.0.1:9") as client:
        with pytest.raises(TypeError, match="'carier'; did you mean 'carriers'"):
            client.subscriptions.create("https://a.example/", carier=["ups"])
        with pytest.raises(TypeError, match="'statuss'; did you mean 'statuses'"):
            client.subscriptions.change(UUID(int=1), statuss=["lost"])
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
            client.shipments.list(colour="red")


async def test_arguments_are_sent_as_they_are_given(client_class: Any) -> None:
    chosen = {"status": "deliverd", "order": "newest", "details": True, "reason": None}

    def listed(url: str) -> list[Any]:
        with client_class(url) as client:
            return list(client.shipments.list(**chosen))

    page = answer(200, b'{"items": [], "next_cursor": null}')
    async with FaultyServer([page]).running() as server:
        assert await asyncio.to_thread(listed, server.url) == []
    assert server.requests == [
        "GET /v1/shipments?status=deliverd&order=newest&details=true&limit=100"
    ]
