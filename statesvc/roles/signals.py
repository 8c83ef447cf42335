"""What makes a process stop: SIGTERM, SIGINT, or the death of the supervisor that started it."""

import asyncio
import os
import signal
import sys
from typing import Final

import structlog

SUPERVISED_VARIABLE: Final = "STATESVC_SUPERVISED"
"""Set by the supervisor: standard input is then a pipe that closes when the supervisor dies, however it dies."""

log = structlog.get_logger()


class StopSignals:
    """The first signal asks to stop, the second one to stop at once."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.aborting = asyncio.Event()

    def listen(self) -> None:
        """Takes over the signals of this process, and watches its supervisor where it has one."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask, number.name.lower())
        if os.environ.get(SUPERVISED_VARIABLE):
            loop.add_reader(sys.stdin.fileno(), self._supervisor_spoke)

    def ask(self, reason: str) -> None:
        """As if a signal came."""
        if self.stopping.is_set():
            log.warning("aborting", reason=reason)
            self.aborting.set()
        else:
            log.info("stopping", reason=reason)
            self.stopping.set()

    def _supervisor_spoke(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.ask("supervisor_died")
