"""Several processes that take from one source: each is this command again, with a number of its own.

A child writes what it has done as JSON lines, and ends when its standard input does, so that none outlives this process. One that dies is
started again; one that refuses a message stops them all.
"""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import orjson

from statesvc.addons.shovel.source import ShovelError
from statesvc.addons.shovel.transfer import TransferTotals

_AGAIN_SECONDS: Final = 1.0
_LIVES_WITHOUT_PROGRESS_MAX: Final = 10
REFUSED: Final = "refused"
NOTICE: Final = "notice"


def totals_line(totals: TransferTotals) -> dict[str, Any]:
    """Return what a child reports."""
    return asdict(totals)


class Fleet:
    """`report` hears the totals of all; `notice`, in words, what went wrong and goes on."""

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        stopping: asyncio.Event,
        report: Callable[[TransferTotals], None],
        notice: Callable[[str], None],
    ) -> None:
        self._commands = commands
        self._stopping = stopping
        self._report = report
        self._notice = notice
        self._finished = TransferTotals()
        self._current: dict[int, TransferTotals] = {}
        self._children: dict[int, Process] = {}
        self._refusal: str | None = None

    @property
    def totals(self) -> TransferTotals:
        """Totals of all processes, those that died included."""
        summed = TransferTotals()
        for one in (self._finished, *self._current.values()):
            summed.add(one)
        return summed

    async def run(self) -> None:
        """Run until every process has ended by itself. Raises ShovelError."""
        stopper = asyncio.create_task(self._stop_children(), name="shovel-stop")
        try:
            async with asyncio.TaskGroup() as group:
                for number, command in enumerate(self._commands):
                    group.create_task(self._supervise(number, command), name=f"shovel-{number}")
        finally:
            stopper.cancel()
            with suppress(asyncio.CancelledError):
                await stopper
        if self._refusal is not None:
            raise ShovelError(self._refusal)

    async def _stop_children(self) -> None:
        await self._stopping.wait()
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)

    async def _supervise(self, number: int, command: Sequence[str]) -> None:
        fruitless = 0
        while not self._stopping.is_set():
            child = self._children[number] = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE
            )
            await self._listen(number, child)
            ended = await child.wait()
            del self._children[number]
            done = self._current.pop(number, TransferTotals())
            self._finished.add(done)
            if ended == 0 or self._stopping.is_set():
                return
            fruitless = 0 if done.taken else fruitless + 1
            if fruitless == _LIVES_WITHOUT_PROGRESS_MAX:
                self._refuse(
                    f"process {number} ended {fruitless} times without having done anything: see what it wrote above"
                )
                return
            how = (
                f"was killed by {signal.Signals(-ended).name}"
                if ended < 0
                else f"ended with {ended}"
            )
            self._notice(f"process {number} {how}; another takes its place")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _listen(self, number: int, child: Process) -> None:
        assert child.stdout is not None  # noqa: S101 - it is a pipe
        async for line in child.stdout:
            said = orjson.loads(line)
            if REFUSED in said:
                self._refuse(said[REFUSED])
            elif NOTICE in said:
                self._notice(f"process {number}: {said[NOTICE]}")
            else:
                self._current[number] = TransferTotals(**said)
                self._report(self.totals)

    def _refuse(self, why: str) -> None:
        self._refusal = self._refusal or why
        self._stopping.set()
