"""Ports for the processes of tests: each once, so that nobody is given what another one is about to
bind.
"""

import os
import random
import socket
from contextlib import ExitStack
from typing import Final

from statesvc.roles.supervisor.child_plan import ROLES

_BELOW_CLIENTS: Final = range(15_000, 32_000)
"""Below those that the system gives to clients, which may take one at any time."""


class _Ports:
    """Hand out ports of this process's share in turn, from a place drawn by chance: other
    runs may be under way.
    """

    def __init__(self) -> None:
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        size = len(_BELOW_CLIENTS) // workers
        self._share = _BELOW_CLIENTS[worker * size : (worker + 1) * size]
        self._next = random.Random().randrange(size)

    def take(self, wanted: int) -> range:
        if self._next + wanted > len(self._share):
            self._next = 0
        taken = self._share[self._next : self._next + wanted]
        self._next += wanted
        return taken


_ports = _Ports()


def free_port() -> int:
    """Return a TCP port that nobody uses now."""
    return _free_ports_in_a_row(1)


def port_for_up() -> int:
    """Return a port for `statesvc up`: each of its roles may take the next one."""
    return _free_ports_in_a_row(len(ROLES))


def _free_ports_in_a_row(wanted: int) -> int:
    """Return the first of so many TCP ports in a row that nobody uses now."""
    while True:
        ports = _ports.take(wanted)
        if _are_free(ports):
            return ports.start


def _are_free(ports: range) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
