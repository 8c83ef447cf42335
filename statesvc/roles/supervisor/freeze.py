"""Imported last by the process that roles are forked from.

What is loaded by then stays, so no collection need visit it. And from then on the terminal is not its own: were it to end with the
terminal (SIGHUP), the supervisor could not see how the roles end.
"""

import gc
import os

from psycopg.pq import PGconn

from events.crypto.sealing import SealingKey
from statesvc.settings.service_settings import read_settings


def _initialise_libraries() -> None:
    """What a library makes at its first use each role would make for itself, in memory that it does not share: 3 MB a role."""
    SealingKey(bytes(32)).seal(b"", context=b"")
    # libpq brings its own OpenSSL
    PGconn.connect(b"host=/nonexistent").encrypt_password(b"-", b"-", b"scram-sha-256")
    read_settings()


_initialise_libraries()
gc.collect()
gc.freeze()
os.setsid()
