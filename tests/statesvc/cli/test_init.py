import os
import re
import stat
import sys
from pathlib import Path

import pytest

from statesvc.cli import main
from statesvc.settings.env_file import VARIABLE, parsed
from statesvc.settings.known_settings import documented_settings
from statesvc.settings.service_settings import load_settings
from tests.world.mounts import mounted_tmpfs


@pytest.fixture(autouse=True)
def _bare_environment(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Take what a command adds to the environment away again."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_every_setting_is_written_with_its_meaning_and_what_is_commented_out_is_the_default(
    tmp_path: Path,
) -> None:
    defaults = load_settings()
    assert main(["init"]) == 0
    text = (tmp_path / "statesvc.env").read_text()
    assert parsed(text, "f") == {}
    found = parsed(re.sub(r"^#(?=[A-Z_]+=)", "", text, flags=re.MULTILINE), "f")
    assert [*found] == [
        setting.variable.replace("<CARRIER>", "UPS") for setting in documented_settings()
    ]
    os.environ.update(found)
    assert load_settings() == defaults
    assert max(map(len, text.splitlines())) <= 140


def test_it_is_for_its_owner_alone_and_an_existing_file_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.env"
    assert main(["init", str(file)]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("STATESVC_PORT=9000\n")
    assert main(["init", str(file)]) == 1
    assert "exists and stays as it is" in capsys.readouterr().err
    assert file.read_text() == "STATESVC_PORT=9000\n"
    assert main(["init", str(tmp_path / "no" / "such.env")]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["option", "option with =", "variable"])
def test_a_command_takes_its_settings_from_the_file(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.env"
    file.write_text("STATESVC_WEBHOOK_SECRET_UPS=from-the-file\nSTATESVC_PROT=1\n")
    given = {
        "option": ["--env-file", str(file)],
        "option with =": [f"--env-file={file}"],
        "variable": [],
    }[how]
    if how == "variable":
        os.environ[VARIABLE] = str(file)
    assert main([*given, "carriers"]) == 2
    assert "unknown setting STATESVC_PROT. Did you mean STATESVC_PORT?" in capsys.readouterr().err
    del os.environ["STATESVC_PROT"]
    assert load_settings().webhook_secrets("ups") == ("from-the-file",)


def test_an_archive_that_is_named_is_set_with_the_months_of_the_log(tmp_path: Path) -> None:
    assert main(["init", "--archive", "s3://parcels/archive"]) == 0
    assert parsed((tmp_path / "statesvc.env").read_text(), "f") == {
        "STATESVC_ARCHIVE_DIR": "s3://parcels/archive",
        "STATESVC_ARCHIVE_LOG_HOT_MONTHS": "1",
    }


def test_a_spool_that_is_named_is_set_and_a_script_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", "--spool", "nats://a,b,c/SPOOL", "named.env"]) == 0
    assert parsed((tmp_path / "named.env").read_text(), "f") == {
        "STATESVC_SPOOL_URL": "nats://a,b,c/SPOOL"
    }
    assert main(["init", "script.env"]) == 0
    assert parsed((tmp_path / "script.env").read_text(), "f") == {}
    for terminal in (sys.stdin, sys.stdout):
        monkeypatch.setattr(terminal, "isatty", lambda: True)
    answers = iter(["", "", "", "none"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert main(["init", "proposed.env"]) == 0
    assert parsed((tmp_path / "proposed.env").read_text(), "f") == {
        "STATESVC_SPOOL_URL": f"file://{tmp_path}/spool"
    }
    assert main(["init", "none.env"]) == 0
    assert parsed((tmp_path / "none.env").read_text(), "f") == {}


def test_without_an_archive_it_says_what_that_means_for_a_database_of_ones_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert main(["init", "embedded.env"]) == 0
    assert "archive" not in capsys.readouterr().out
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/statesvc")
    assert main(["init"]) == 0
    assert "everything stays in the database for good" in capsys.readouterr().out


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
