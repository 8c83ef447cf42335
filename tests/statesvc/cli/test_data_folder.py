"""A data folder that cannot hold a server is said in one sentence, before anything is made."""

import os
from pathlib import Path

import pytest

from statesvc.cli import main
from tests.world.mounts import mounted_tmpfs

COMMANDS = (
    ["up", "--port", "0"],
    ["status"],
    ["migrate"],
    ["psql", "-c", "SELECT 1"],
    ["keys", "list"],
)
NAMES = (b"a,b", b'a"b', b"a\\b", b"a$HOME", b"a`b", b"a\rb", b"a\xffb")


def refusal(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the sentence with which the command refuses the folder."""
    os.environ["STATESVC_DATA_DIR"] = os.fspath(folder)
    try:
        assert main(arguments) == 2
    finally:
        del os.environ["STATESVC_DATA_DIR"]
    (line,) = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("statesvc:")
    ]
    assert line.endswith("set STATESVC_DATA_DIR to another folder")
    return line


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_name_that_postgresql_cannot_take_is_refused(
    command: list[str], name: bytes, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal(command, empty / os.fsdecode(name), capsys)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_stands_in_the_place_of_the_folder_is_named(
    command: list[str], empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty / "file").touch()
    (empty / "link").symlink_to(empty / "nowhere")
    assert "file is a file, and no folder" in refusal(command, empty / "file", capsys)
    assert "file is a file, and no folder" in refusal(command, empty / "file" / "data", capsys)
    assert "link is a link that leads nowhere" in refusal(command, empty / "link", capsys)


@pytest.mark.usefixtures("own_processes")
def test_a_disk_that_takes_no_writes_is_named(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted_tmpfs(empty / "disk") as remount:
        (empty / "disk" / "data" / "postgres").mkdir(parents=True)
        remount("ro")
        for command in COMMANDS:
            sentence = refusal(command, empty / "disk" / "data", capsys)
            assert "takes no writes: its disk is mounted read-only" in sentence
