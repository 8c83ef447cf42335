"""Watch of a child: a question every few seconds over its control socket, served by its loop.

The number of unanswered questions counts, not the time: after a suspension the child is asked again
before it is judged. A late answer is an answer.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from statesvc.background.waiting import cancel_fully
from statesvc.roles.metrics_address import ALIVE

ASK_SECONDS: Final = 2.0
# Unanswered in a row until the log names the child.
SILENT_ASKS: Final = 3
# Unanswered in a row until it is to be killed.
KILL_ASKS: Final = 10
# More questions before the first answer: a child may freeze right after its start.
START_ASKS_A_TURN: Final = 8
# Unanswered in a row until it is to be killed before its first answer: it loads, on a machine that
# may be busy.
START_ASKS: Final = 60 * START_ASKS_A_TURN

log = structlog.get_logger()


class ChildWatch:
    """Watches the child of a role through all its lives."""

    def __init__(self, name: str, control: Path, *, ask_seconds: float) -> None:
        self.answers = True
        self.has_answered = False
        """Of the present child."""
        self._name = name
        self.control = control
        self._ask_seconds = ask_seconds

    async def until_silent(self, pid: int) -> None:
        """Return once the child that was just started is to be killed."""
        self.has_answered = False
        unanswered = 0
        asking: asyncio.Task[bool] | None = None
        try:
            while unanswered < (KILL_ASKS if self.has_answered else START_ASKS):
                if asking is None:
                    asking = asyncio.create_task(self._is_alive(), name=f"ask-{self._name}")
                await asyncio.sleep(
                    self._ask_seconds
                    if self.has_answered
                    else self._ask_seconds / START_ASKS_A_TURN
                )
                is_answered = asking.done() and asking.result()
                if asking.done():
                    asking = None
                if is_answered:
                    self._say_it_answers(pid)
                    unanswered = 0
                    continue
                unanswered += 1
                if unanswered == SILENT_ASKS and self.has_answered:
                    self.answers = False
                    log.warning(
                        "child_silent",
                        role=self._name,
                        pid=pid,
                        seconds=unanswered * self._ask_seconds,
                    )
        finally:
            if asking is not None:
                await cancel_fully(asking)
        self.answers = False

    def _say_it_answers(self, pid: int) -> None:
        self.has_answered = True
        if not self.answers:
            self.answers = True
            log.info("child_answers", role=self._name, pid=pid)

    async def _is_alive(self) -> bool:
        with suppress(OSError):
            return bool(await ask(self.control, ALIVE))
        return False


async def ask(control: Path, path: str) -> bytes:
    """Ask a child, and return its answer. Raises OSError if it does not listen."""
    reader, writer = await asyncio.open_unix_connection(str(control))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
    return answer.partition(b"\r\n\r\n")[2]
