"""Results computed in a copy of the process."""

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from statesvc.background.forked_result import ForkedResultError, forked_result

LONG = 1_000_000
"""More than a pipe holds."""


def test_the_result_comes_from_a_process_that_has_ended() -> None:
    found = forked_result(lambda: str(os.getpid()).encode().rjust(LONG))
    assert len(found) == LONG
    pid = int(found)
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_copy_that_fails_says_why_and_goes_no_further(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> bytes:
        raise RuntimeError("it has no words")

    with pytest.raises(ForkedResultError, match="ended with 1"):
        forked_result(fail)
    assert "it has no words" in capfd.readouterr().err


@pytest.mark.usefixtures("own_processes")
def test_a_copy_ends_soon_after_its_process_was_killed(tmp_path: Path) -> None:
    def compute_when_alone() -> bytes:
        (tmp_path / "pid").write_text(f"{os.getpid()}")
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.01)
        return bytes(LONG)

    process = multiprocessing.get_context("fork").Process(
        target=forked_result, args=(compute_when_alone,)
    )
    process.start()
    pid = int(
        awaited(lambda: (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else "")
    )
    process.kill()
    process.join()
    awaited(lambda: "ended" if has_ended(pid) else "")


def awaited(what: Callable[[], str]) -> str:
    deadline = time.monotonic() + 30
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
