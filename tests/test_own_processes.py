"""`make test-fast` is what it says: a test that is not marked as slow can start no process of
ours.
"""

import asyncio
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

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
    assert multiprocessing.get_context("spawn").get_start_method() == "forkserver", (
        "forked from one that has loaded the service"
    )


@pytest.mark.usefixtures("own_processes")
def test_a_spawned_process_has_the_environment_of_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("one", "another"):
        monkeypatch.setenv("STATESVC_A_TEST", value)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as children:
            assert children.submit(os.getenv, "STATESVC_A_TEST").result() == value
