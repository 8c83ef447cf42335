"""Processes that let others go first when there is not enough processor for all."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_AUTOGROUP: Final = Path("/proc/self/autogroup")
_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.1


def own_session(*, niceness: int) -> None:
    """Makes the process the leader of a session, out of reach of its terminal, with this niceness next to all other processes.

    Blocks, for at most two seconds. Raises PermissionError where it leads a session or process group already.
    """
    os.setsid()
    os.nice(niceness)
    # the default of Debian and Ubuntu, outside of containers: there the niceness of a process counts within its session alone, and each
    # session has one of its own (man 7 sched, "The autogroup feature")
    if niceness and _AUTOGROUP.exists():
        _nice_session(niceness)


def _nice_session(niceness: int) -> None:
    for _ in range(_TRIES):
        # a system that does not let us: then it is as fast as the others, no worse
        with suppress(OSError):
            try:
                _AUTOGROUP.write_text(str(niceness))
            except BlockingIOError:
                # ten a second on the whole machine, unless by root
                time.sleep(_PAUSE_SECONDS)
                continue
        return
