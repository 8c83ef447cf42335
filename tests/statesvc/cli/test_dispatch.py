import os
import subprocess
import sys

import pytest

from statesvc.cli import COMMANDS, main


def test_each_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert name in capsys.readouterr().out


def test_a_command_that_does_not_exist_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["frobnicate"])
    assert ended.value.code == 2
    assert "frobnicate" in capsys.readouterr().err


@pytest.mark.usefixtures("own_processes")
def test_help_loads_neither_the_database_driver_nor_the_settings() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from statesvc.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])\n"
        "print(sorted({'psycopg', 'pydantic', 'aiohttp', 'lxml', 'structlog'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("name", "niceness", "policy"), [("verify", 10, os.SCHED_IDLE), ("rebuild_command", 10, os.SCHED_OTHER), ("queue", 0, os.SCHED_OTHER)]
)
def test_what_computes_for_long_lets_others_go_first(name: str, niceness: int, policy: int) -> None:
    arguments = ["rebuild", "shipment"] if name == "rebuild_command" else [name]
    code = (
        f"import os, sys, statesvc.cli.{name} as command\n"
        "from statesvc.cli import main\n"
        "command.run = lambda _: print(os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0), os.sched_getscheduler(0)) or 0\n"
        f"sys.argv[1:] = {arguments}\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    base = os.getpriority(os.PRIO_PROCESS, 0)
    expected = [str(max(base, niceness)), str(os.getsid(0)), str(policy)]
    assert ended.stdout.split() == expected, "in the session of its terminal, whose Ctrl-C it gets"


def test_a_broken_setting_is_told_by_its_name_and_not_by_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_DATABASE_CONNECTIONS", "plenty")
    assert main(["carriers"]) == 2
    told = capsys.readouterr().err
    assert "STATESVC_DATABASE_CONNECTIONS: " in told
    assert "plenty" not in told
