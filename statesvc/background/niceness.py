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
    """Make the process the leader of a session, out of reach of its terminal, with this niceness
    next to all other processes.

    Blocks, for at most two seconds. Raises PermissionError where it leads a session or
    process group already.
    """
    # before nice: the niceness of a session belongs to its leader
    os.setsid()
    os.nice(niceness)
    if niceness:
        _nice_session(os.getpid(), niceness)


def run_in_idle_time() -> None:
    """Let any other process interrupt this process and its children at once; niceness is unchanged.

    Niceness alone makes its turns rarer, not shorter: each lasts some milliseconds, which a
    webhook would wait for at each of its steps. Linux has such a policy; elsewhere this has no
    effect.
    """
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def lower_priority(*, niceness: int) -> None:
    """Give this process, and later children, at least this niceness.

    It stays in the session of its terminal.
    """
    # never less than before, which only root may do
    os.setpriority(os.PRIO_PROCESS, 0, max(niceness, os.getpriority(os.PRIO_PROCESS, 0)))


def make_nicer(pid: int, *, niceness: int) -> bool:
    """Make another process, leader of a session of its own, nicer.

    False where it is not ours to touch.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, pid, max(niceness, os.getpriority(os.PRIO_PROCESS, pid)))
    except OSError:
        return False
    _nice_session(pid, niceness)
    return True


def _nice_session(leader: int, niceness: int) -> None:
    """Set the session's own niceness, where the kernel groups by session.

    The default of Debian and Ubuntu, outside of containers: there the niceness of a process
    counts within its session alone, and each session has its own niceness (man 7 sched, "The
    autogroup feature").
    """
    autogroup = _PROCESSES / str(leader) / "autogroup"
    for _ in range(_TRIES if autogroup.exists() else 0):
        # a system that does not let us: then it is as fast as the others, no worse
        with suppress(OSError):
            try:
                autogroup.write_text(str(niceness))
            except BlockingIOError:
                # ten a second on the whole machine, unless by root
                time.sleep(_PAUSE_SECONDS)
                continue
        return
