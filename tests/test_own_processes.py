"""`make test-fast` is what it says: a test that is not marked as slow can start no process of ours."""

import asyncio
import multiprocessing
import subprocess
import sys

import pytest

LACKS = "lacks the fixture own_processes"
PROGRAM = [sys.executable, "-c", "print('started', end='')"]


async def test_a_test_without_the_fixture_is_refused_a_process() -> None:
    with pytest.raises(pytest.fail.Exception, match=LACKS):
        subprocess.run(PROGRAM, check=False)  # noqa: ASYNC221 - it does not come to it
    with pytest.raises(pytest.fail.Exception, match=LACKS):
        await asyncio.create_subprocess_exec(*PROGRAM)
    with pytest.raises(pytest.fail.Exception, match=LACKS):
        multiprocessing.get_context("spawn")


@pytest.mark.usefixtures("own_processes")
def test_the_fixture_marks_its_test_as_slow(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("slow") is not None
    assert subprocess.run(PROGRAM, check=True, capture_output=True, text=True).stdout == "started"
    assert multiprocessing.get_context("spawn").get_start_method() == "forkserver", "forked from one that has loaded the service"
