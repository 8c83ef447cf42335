"""Ports for the processes of tests."""

import random
import socket
from contextlib import ExitStack
from typing import Final

_BELOW_CLIENTS: Final = range(15_000, 32_000)
"""Below those that the system gives to clients, which may take one of a row at any time."""


def free_port() -> int:
    """Return a TCP port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports_in_a_row(wanted: int) -> int:
    """Return the first of so many TCP ports in a row that nobody uses now."""
    # drawn anew, because processes of other tests look for some at the same time
    draw = random.Random()
    while True:
        first = draw.randrange(_BELOW_CLIENTS.start, _BELOW_CLIENTS.stop - wanted)
        if _are_free(range(first, first + wanted)):
            return first


def _are_free(ports: range) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
