"""A copy of a process that may have threads: they are not in the copy, which therefore
waits for none of them.
"""

import gc
import os
import signal
import warnings
from typing import Final

_OF_A_LOOP: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def fork_alone() -> int:
    """Fork a copy outside this process's event loop.

    Signals for the copy end it and do not reach the loop.
    """
    # until it has handlers of its own, a signal for the copy would reach this process's loop
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_A_LOOP)
    try:
        with warnings.catch_warnings():
            # from 3.12 on: a fork with threads may deadlock on a lock that one of them held; the
            # copy uses none
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            # what is open belongs to objects of the loop: no collection may close it under a
            # number that is used again
            gc.freeze()
            # the loop's pipe is shared with the copy: its signals would wake the parent
            signal.set_wakeup_fd(-1)
            for number in _OF_A_LOOP:
                signal.signal(number, signal.SIG_DFL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid
