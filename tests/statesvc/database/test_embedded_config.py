"""Settings of the embedded server, and its priority beside the roles."""

import os
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from statesvc.database import embedded_config
from statesvc.database.embedded_config import configuration
from statesvc.database.server_niceness import NICENESS, lower_priority
from tests.world.database import Database

GIB = 1024**3


def buffers(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, memory: int, limit: str | None
) -> str:
    """Return `shared_buffers` on a machine with so much memory, in a container with that limit
    (None: no control groups).
    """
    sizes = {"SC_PHYS_PAGES": memory // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    file = folder / "memory.max"
    if limit is not None:
        file.write_text(f"{limit}\n")
    monkeypatch.setattr(embedded_config, "_MEMORY_LIMIT", file)
    lines = configuration(folder=folder, socket_dir=folder, tcp_port=0, overrides={}).splitlines()
    (found,) = [line for line in lines if line.startswith("shared_buffers")]
    return found.partition(" = ")[2].strip("'")


@pytest.mark.parametrize(
    ("memory", "limit", "expected"),
    [
        (2 * GIB, None, "512MB"),
        (2 * GIB, "max", "512MB"),
        (64 * GIB, "max", "1024MB"),
        (64 * GIB, str(GIB), "256MB"),
        (64 * GIB, str(GIB // 4), "128MB"),
        (GIB // 4, str(64 * GIB), "128MB"),
    ],
    ids=["a quarter", "no limit", "enough", "container", "least", "the machine's is less"],
)
def test_buffers_follow_the_memory_of_machine_or_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory: int, limit: str | None, expected: str
) -> None:
    assert buffers(monkeypatch, tmp_path, memory=memory, limit=limit) == expected


@pytest.mark.parametrize(
    ("disk", "expected"),
    [(8 * GIB, "2048MB"), (100 * GIB, "6400MB"), (4096 * GIB, "16384MB")],
    ids=["least", "a sixteenth", "enough"],
)
def test_the_log_between_checkpoints_follows_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disk: int, expected: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=disk))
    lines = configuration(
        folder=tmp_path, socket_dir=tmp_path, tcp_port=0, overrides={}
    ).splitlines()
    assert f"max_wal_size = '{expected}'" in lines


def test_an_override_wins_and_quotes_are_kept() -> None:
    text = configuration(
        folder=Path("/"),
        socket_dir=Path("/run/it's here"),
        tcp_port=5433,
        overrides={"fsync": "off"},
    )
    assert "fsync = 'off'" in text.splitlines()
    assert "unix_socket_directories = '/run/it''s here'" in text.splitlines()
    assert "listen_addresses = '127.0.0.1'" in text.splitlines()


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
