"""Lowers the priority of the server processes of some of our own connections.

PostgreSQL has no priorities. If its server runs on this machine, as the embedded one does, this
user may be allowed to make a backend nicer. Only a little: a backend may hold locks that others
wait for.
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from psycopg import BaseConnection

from statesvc.background.niceness import make_nicer

_CREDENTIALS: Final = struct.Struct("3i")
_PARENT: Final = 1
NICENESS: Final = 10


def lower_priority(connection: BaseConnection[Any]) -> bool:
    """Make the connection's server process nicer.

    False where it is elsewhere, or not ours to touch: then it is as fast as the others.
    """
    pid = connection.info.backend_pid
    if not _is_child(pid, of=_listener(connection.fileno())):
        return False
    return make_nicer(pid, niceness=NICENESS)


def _listener(descriptor: int) -> int | None:
    """Return the process that listens at the other end of a unix socket; None for a
    socket of another kind.
    """
    with suppress(OSError, AttributeError), socket.socket(fileno=os.dup(descriptor)) as peer:
        if peer.family == socket.AF_UNIX:
            pid, _, _ = _CREDENTIALS.unpack(
                peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            return int(pid)
    return None


def _is_child(pid: int, *, of: int | None) -> bool:
    """Return whether the process is our server's.

    Behind a pooler the pid may be any process's here.
    """
    if not of:
        return False
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[_PARENT]) == of
