"""A copy of this process, which may have a loop and threads: neither is in the copy, which
therefore waits for none of them.
"""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_OF_A_LOOP: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def fork_to(run: Callable[[], int]) -> int:
    """Fork a copy that ends with the exit code of `run`, and return its process number.

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
    if pid:
        return pid
    exit_code = 1
    try:
        exit_code = run()
    except BaseException:  # noqa: BLE001 - the copy must not go on as if it were this process
        with suppress(Exception):
            sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        # not `sys.exit`: the exit handlers are the parent's
        os._exit(exit_code)


class ForkedResultError(RuntimeError):
    """The copy failed and has reported the reason."""


def forked_result(compute: Callable[[], bytes]) -> bytes:
    """Compute in a copy, so that its memory is freed with it. Blocks. Raises ForkedResultError.

    `compute` must use no event loop, no thread and no open file or connection.
    """
    result, theirs = os.pipe()

    def write() -> int:
        # or it would wait for itself to read, once this process is gone
        os.close(result)
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(compute())
        return 0

    pid = fork_to(write)
    # our copy of the writing end: while it is open, reading never meets the end
    os.close(theirs)
    with os.fdopen(result, "rb") as pipe:
        # before the wait: a copy whose result does not fit the pipe would never end
        found = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ForkedResultError(f"the copy ended with {os.waitstatus_to_exitcode(status)}")
    return found
