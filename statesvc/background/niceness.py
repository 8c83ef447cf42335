"""Processes that let others go first when there is not enough processor for all."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")
_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.1


def own_session(*, niceness: int) -> None:
    """Makes the process the leader of a session, out of reach of its terminal, with this niceness next to all other processes.

    Blocks, for at most two seconds. Raises PermissionError where it leads a session or process group already.
    """
    os.setsid()
    stand_back(os.getpid(), niceness)


def stand_back(leader: int, niceness: int) -> None:
    """Gives this process, which leads a session, a niceness as far above our own. Blocks, for at most two seconds."""
    if not niceness:
        return
    with suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, leader, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    # the default of Debian and Ubuntu, outside of containers: there the niceness of a process counts within its session alone, and each
    # session has one of its own (man 7 sched, "The autogroup feature")
    autogroup = _PROCESSES / str(leader) / "autogroup"
    for _ in range(_TRIES):
        # a system without it, or that does not let us: then it is as fast as the others, no worse
        with suppress(OSError):
            try:
                autogroup.write_text(str(niceness))
            except BlockingIOError:
                # ten a second on the whole machine, unless by root
                time.sleep(_PAUSE_SECONDS)
                continue
        return
