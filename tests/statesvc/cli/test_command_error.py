"""Messages that a person reads instead of a traceback."""

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psycopg
import pytest

from events.crypto.sealing import UnknownMasterKeyError
from statesvc.cli.explanation import explain

ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("STATESVC_", "DATABASE_URL"))
}
ENVIRONMENT["PYTHONPATH"] = str(Path(__file__).parents[3])


@pytest.mark.parametrize(
    "error",
    [
        BrokenProcessPool("a child process terminated abruptly"),
        psycopg.InterfaceError("the connection is closed"),
        psycopg.errors.AdminShutdown("terminating connection"),
        ExceptionGroup(
            "several",
            [
                LookupError("no words"),
                psycopg.OperationalError("server closed the connection unexpectedly"),
            ],
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_database_that_dies_under_a_command_is_a_line(error: Exception) -> None:
    words = explain(error)
    assert words is not None
    assert "database" in str(words)
    assert words.exit_code == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            psycopg.OperationalError(
                'connection failed: connection to server at "10.0.0.1", port 5 failed: FATAL: '
                ' password authentication failed for user "s"'
            ),
            (
                'password authentication failed for user "s"; check user, password and database in'
                " DATABASE_URL"
            ),
        ),
        (
            psycopg.OperationalError(
                'connection failed: connection to server at "10.0.0.1", port 1 failed: Connection'
                " refused\n\tIs it"
            ),
            "Connection refused; check the address in DATABASE_URL, and that PostgreSQL runs there",
        ),
        (
            psycopg.errors.InsufficientPrivilege("permission denied for table shipment"),
            (
                "permission denied for table shipment; STATESVC_OWNER_URL must name the role that"
                " owns the tables"
            ),
        ),
    ],
    ids=["password", "refused", "role"],
)
def test_a_database_that_refuses_is_a_line_that_says_what_to_look_at(
    error: Exception, said: str
) -> None:
    assert str(explain(error)) == f"the database refused or does not answer: {said}"


def test_a_file_of_another_user_and_a_master_key_that_is_missing_are_lines() -> None:
    assert "run it as the user" in str(
        explain(PermissionError(13, "Permission denied", "/var/lib/statesvc"))
    )
    unknown = UnknownMasterKeyError(
        "sealed under master key ab: STATESVC_MASTER_KEY does not hold it"
    )
    assert str(explain(unknown)) == str(unknown)


def test_a_defect_keeps_its_traceback() -> None:
    assert explain(LookupError("no words")) is None
    assert explain(FileNotFoundError("something else")) is None
    assert explain(ExceptionGroup("several", [LookupError("no words")])) is None


@pytest.mark.usefixtures("own_processes")
def test_an_interrupt_while_the_command_line_is_being_loaded_is_a_line() -> None:
    code = (
        "import builtins, os, signal, sys\n"
        "import statesvc.__main__ as entry\n"
        "original = builtins.__import__\n"
        "def load(name, *rest, **more):\n"
        "    if name == 'statesvc.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return original(name, *rest, **more)\n"
        "builtins.__import__ = load\n"
        "sys.exit(entry.main())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert (ended.returncode, ended.stderr) == (1, "statesvc: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("closed", [">&-", "<&-"])
def test_a_closed_stream_goes_nowhere(closed: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m statesvc completion bash {closed}', sys.executable],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("command", ["status", "worker"])
def test_a_removed_working_folder_is_a_line(command: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m statesvc "$1"',
            sys.executable,
            command,
        ],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == "statesvc: the working folder was removed: change to another one\n"
