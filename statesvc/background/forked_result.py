"""Compute a small result in a forked copy of this process, so that its memory is freed with it."""

import os
from collections.abc import Callable

from statesvc.background.forking import fork_to


class ForkedResultError(RuntimeError):
    """The copy failed and has reported the reason."""


def forked_result(compute: Callable[[], bytes]) -> bytes:
    """Block until the result is there. Raises ForkedResultError.

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
