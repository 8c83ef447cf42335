"""What is computed in a copy of the process."""

import os

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
