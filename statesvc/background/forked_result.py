"""Compute a small result in a forked copy of this process, so that its memory is freed with it."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from statesvc.background.forking import fork_alone


class ForkedResultError(RuntimeError):
    """The copy failed and has reported the reason."""


def forked_result(compute: Callable[[], bytes]) -> bytes:
    """Block until the result is there. Raises ForkedResultError.

    `compute` must use no event loop, no thread and no open file or connection.
    """
    result, theirs = os.pipe()
    pid = fork_alone()
    if pid == 0:
        # or it would wait for itself to read, once this process is gone
        os.close(result)
        exit_code = 1
        try:
            with os.fdopen(theirs, "wb") as pipe:
                pipe.write(compute())
            exit_code = 0
        except BaseException:  # noqa: BLE001 - the copy must not go on as if it were this process
            with suppress(Exception):
                sys.excepthook(*sys.exc_info())
        finally:
            os._exit(exit_code)
    # our copy of the writing end: while it is open, reading never meets the end
    os.close(theirs)
    with os.fdopen(result, "rb") as pipe:
        # before the wait: a copy whose result does not fit the pipe would never end
        found = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ForkedResultError(f"the copy ended with {os.waitstatus_to_exitcode(status)}")
    return found
