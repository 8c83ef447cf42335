"""Command lines in processes that are forked from one which has loaded the service, as
`statesvc up` starts its roles.

A program of its own takes most of a second of computing to load, each time.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import setproctitle

from tests.world.own_processes import fork_server

_ROOT: Final = Path(__file__).parents[2]


class ForkedProcess:
    """The part of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process
        self._ended = asyncio.create_task(self._wait(), name=f"process-{self.pid}")

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def _wait(self) -> int:
        loop = asyncio.get_running_loop()
        has_ended = asyncio.Event()
        loop.add_reader(self._process.sentinel, has_ended.set)
        try:
            await has_ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


async def fork(
    launcher: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: Path,
    errors: Path | None = None,
    folder: Path = _ROOT,
) -> ForkedProcess:
    """Run `main()` of the module `launcher` in `folder` as `python -m launcher ARGUMENTS` would.

    `errors` None: both go to `output`.
    """
    process = fork_server().Process(
        target=_run, args=(launcher, [*arguments], {**environment}, output, errors, folder)
    )
    await asyncio.to_thread(process.start)
    return ForkedProcess(process)


def _run(  # noqa: PLR0917 - a process takes them by position
    launcher: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path | None,
    folder: Path,
) -> None:
    """Run in the child."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1 if errors is None else os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    setproctitle.setproctitle(" ".join(("statesvc", *arguments)))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [launcher, *arguments]
    sys.exit(import_module(launcher).main())
