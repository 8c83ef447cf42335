"""The server's side of a connection stands back, where it is a process of this
machine that we may touch.
"""

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg

from statesvc.database.server_niceness import NICENESS, lower_priority
from tests.world.database import Database


def niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_the_process_of_this_connection_and_no_other(database: Database) -> None:
    with (
        psycopg.connect(database.service_dsn) as bulk,
        psycopg.connect(database.service_dsn) as other,
    ):
        before = niceness(other.info.backend_pid)
        assert lower_priority(bulk)
        assert (niceness(bulk.info.backend_pid), niceness(other.info.backend_pid)) == (
            NICENESS,
            before,
        )
        session = Path(f"/proc/{bulk.info.backend_pid}/autogroup")
        assert not session.exists() or session.read_text().endswith(f" nice {NICENESS}\n")
        assert bulk.execute("SELECT 1").fetchone() == (1,)


def test_a_process_that_the_other_end_did_not_start_is_left_alone(database: Database) -> None:
    """Behind a pooler, or from another machine, the number of the server's process is
    that of anyone's here.
    """
    mine, theirs = socket.socketpair()
    with psycopg.connect(database.service_dsn) as connection, mine, theirs:
        pooled = SimpleNamespace(info=connection.info, fileno=mine.fileno)
        before = niceness(connection.info.backend_pid)
        assert not lower_priority(cast("Any", pooled))
        assert niceness(connection.info.backend_pid) == before


def test_a_server_at_the_end_of_a_network_is_left_alone(database: Database) -> None:
    with psycopg.connect(database.service_dsn) as connection, socket.socket() as network:
        assert not lower_priority(
            cast("Any", SimpleNamespace(info=connection.info, fileno=network.fileno))
        )
