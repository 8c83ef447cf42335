"""Log lines for people."""

from pathlib import Path

import orjson
import pytest

from statesvc.cli import main
from tests.world.shell import Shell

LINES = (
    {
        "event": "child_started",
        "role": "api",
        "level": "info",
        "timestamp": "2026-11-26T20:00:00.5Z",
        "process": "up",
    },
    {
        "event": "child_died",
        "role": "api",
        "exit_code": -9,
        "level": "error",
        "timestamp": "2026-11-26T20:00:01Z",
        "process": "up",
    },
    {
        "event": "normalizer_fallback",
        "carrier": "ups",
        "level": "warning",
        "timestamp": "2026-11-26T20:00:02Z",
        "process": "worker",
    },
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "log"
    file.write_bytes(
        b"".join(orjson.dumps(line) + b"\n" for line in LINES) + b"what another program says\n"
    )
    return str(file)


async def test_each_line_is_short_and_what_is_not_ours_stays(shell: Shell, log: str) -> None:
    assert (await shell("logs", log)).splitlines() == [
        "20:00:00 up             child_started role=api",
        "20:00:01 up       ERROR child_died role=api  exit_code=-9",
        "20:00:02 worker   WARN  normalizer_fallback carrier=ups",
        "what another program says",
    ]


async def test_lines_are_chosen_by_level_and_by_what_they_are_about(shell: Shell, log: str) -> None:
    assert [
        line.split()[3]
        for line in (await shell("logs", log, "--level", "warning")).splitlines()[:-1]
    ] == [
        "child_died",
        "normalizer_fallback",
    ]
    assert "normalizer_fallback" in await shell("logs", log, "--about", "ups")
    assert "child" not in await shell("logs", log, "--about", "ups")


def test_a_file_that_is_not_there_is_wrong_use(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["logs", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
