"""Passwords that a program prints."""

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.open_connection import open_connection, open_sync_connection
from statesvc.database.password_command import (
    PasswordCommand,
    PasswordCommandError,
    choose_password_command,
)
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.database.sql_errors import ConnectionCause, connection_cause
from tests.world.postgres import Server

Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Make a program of these lines of shell; each call leaves its arguments in `calls`.

    No command is chosen afterwards.
    """

    def make(lines: str) -> str:
        path = tmp_path / "password"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{lines}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    yield make
    choose_password_command(None)


def without_password(dsn: str) -> tuple[str, str]:
    given = conninfo_to_dict(dsn)
    return str(given.pop("password")), make_conninfo("", **given)


async def test_connections_of_every_kind_log_in_with_what_it_prints(
    database: Server, program: Program, tmp_path: Path
) -> None:
    password, dsn = without_password(database.service_dsn)
    choose_password_command(program(f"echo {password}") + " {user} {port} '{dbname}'")
    async with await open_connection(dsn, application_name="statesvc test"):
        pass
    open_sync_connection(dsn, application_name="statesvc test").close()
    limits = PoolLimits(connections_max=3, connections_min=3, acquire_seconds=5)
    async with make_pool(dsn, name="statesvc test", limits=limits) as pool:
        await pool.wait()
        async with pool.connection() as connection:
            assert connection.info.user == "statesvc_service"
    given = conninfo_to_dict(dsn)
    assert set((tmp_path / "calls").read_text().splitlines()) == {
        f"statesvc_service {given.get('port')} {given['dbname']}"
    }
    assert len((tmp_path / "calls").read_text().splitlines()) == 1, (
        "a burst of connections starts it once"
    )


async def test_what_was_refused_is_asked_for_anew(
    database: Server, program: Program, tmp_path: Path
) -> None:
    password, dsn = without_password(database.service_dsn)
    secret = tmp_path / "secret"
    secret.write_text("of yesterday")
    choose_password_command(program(f"cat {secret}"))
    with pytest.raises(psycopg.OperationalError) as raised:
        await open_connection(dsn, application_name="statesvc test")
    assert connection_cause(raised.value) is ConnectionCause.AUTH
    secret.write_text(f"{password}\n")
    async with await open_connection(dsn, application_name="statesvc test"):
        pass


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("exit 3", "ended with 3"),
        ("true", "printed nothing"),
        ("echo secret; exit 1", "ended with 1"),
    ],
)
async def test_a_program_that_prints_none_is_told_without_what_it_said(
    program: Program, lines: str, words: str
) -> None:
    with pytest.raises(PasswordCommandError, match=words) as raised:
        await PasswordCommand(program(lines)).password("host=/nowhere user=x")
    assert "secret" not in str(raised.value)
    with pytest.raises(PasswordCommandError, match="there is no program"):
        PasswordCommand("/nowhere/at/all").password_now("host=/nowhere user=x")


async def test_an_address_that_has_its_password_is_taken_as_it_is(
    database: Server, program: Program, tmp_path: Path
) -> None:
    choose_password_command(program("echo wrong"))
    async with await open_connection(database.service_dsn, application_name="statesvc test"):
        pass
    passfile = make_conninfo(
        without_password(database.service_dsn)[1], passfile=str(tmp_path / "pgpass")
    )
    assert await PasswordCommand(sys.executable).password(passfile) is None
    assert not (tmp_path / "calls").exists()
