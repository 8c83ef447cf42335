"""A server as a provider has it: its master is no superuser, and what it forces on sessions
is not ours to choose.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.postgres_programs import EmbeddedServerError, programs
from tests.acceptance.all_roles import ROLES, all_roles, well_again
from tests.acceptance.forced_settings import LIMITS, PARSING
from tests.acceptance.processes import RoleProcess, Service
from tests.acceptance.steady_pushes import steady_pushes
from tests.world.ports import free_port
from tests.world.waiting import until

# a server of their own, five roles
pytestmark = [pytest.mark.timeout(500), pytest.mark.usefixtures("own_processes")]

MESSAGES = 100
SCRIPT = Path(__file__).parents[2] / "statesvc" / "database" / "embedded_roles.sql"
PASSWORDS = {
    "STATESVC_OWNER_PASSWORD": "of-the-owner",
    "STATESVC_SERVICE_PASSWORD": "of-the-service",
    "STATESVC_AUDITOR_PASSWORD": "x",
}
OVERRIDES = {"shared_buffers": "64MB", "fsync": "off", "max_wal_size": "512MB"}


@dataclass(frozen=True, kw_only=True)
class ManagedServer:
    """`provider`: the superuser, which nobody but the provider has."""

    major: int
    provider: str
    master: str

    def dsn(self, user: str, password: str) -> str:
        return make_conninfo(self.master, user=user, password=password, dbname="statesvc")

    def psql(
        self, dsn: str, *arguments: str | Path, text: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command = [
            programs(self.major) / "psql",
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            *arguments,
            dsn,
        ]
        return subprocess.run(
            command,
            input=text,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def service(self, folder: Path, settings: Mapping[str, str | None]) -> Service:
        folder.mkdir(parents=True, exist_ok=True)
        service, owner = (
            self.dsn("statesvc_service", "of-the-service"),
            self.dsn("statesvc_owner", "of-the-owner"),
        )
        return Service(
            service_dsn=service, owner_dsn=owner, folder=folder, settings=settings, forks=True
        )


@asynccontextmanager
async def managed_server(folder: Path, major: int) -> AsyncIterator[ManagedServer]:
    """Run a fresh server: the embedded server's own roles and database are taken
    away, and a master is made.
    """
    try:
        server = EmbeddedServer(
            folder / "data", major=major, tcp_port=free_port(), overrides=OVERRIDES
        )
    except EmbeddedServerError as error:
        pytest.skip(str(error))
    dsns = await asyncio.to_thread(server.start)
    try:
        provider = make_conninfo(str(dsns.superuser), dbname="postgres")
        with psycopg.connect(provider, autocommit=True) as connection:
            connection.execute("DROP DATABASE statesvc WITH (FORCE)")
            connection.execute("DROP ROLE statesvc_owner, statesvc_service, statesvc_auditor")
            connection.execute(
                "CREATE ROLE master LOGIN CREATEROLE CREATEDB NOSUPERUSER PASSWORD 'of-the-master'"
            )
            connection.execute("GRANT pg_monitor TO master WITH ADMIN OPTION")
        yield ManagedServer(
            major=major,
            provider=provider,
            master=make_conninfo(provider, user="master", password="of-the-master"),
        )
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(folder / "data", ignore_errors=True)


async def made(server: ManagedServer, folder: Path, **settings: str) -> Service:
    """Prepare the roles by the master, then the schema by the owner."""
    for _ in range(2):
        ended = server.psql(server.master, "-f", SCRIPT, **PASSWORDS)
        assert ended.returncode == 0, ended.stderr
    service = server.service(folder, settings)
    async with service:
        exit_code, _, errors = await service.run("migrate")
        assert exit_code == 0, errors
    return server.service(folder, settings)


async def failures(service: Service) -> list[str]:
    _, output, _ = await service.run("doctor", "--json")
    # the tests' server runs without fsync
    return [
        each["text"]
        for each in json.loads(output)
        if each["severity"] == "fail" and each["about"] != "durability"
    ]


@pytest.mark.parametrize(
    ("major", "forced"),
    [(16, {}), (18, {**PARSING, **LIMITS})],
    ids=["16, nothing forced", "18, all forced"],
)
async def test_everything_works_with_a_master_that_is_no_superuser(
    tmp_path: Path, major: int, forced: dict[str, str]
) -> None:
    async with managed_server(tmp_path, major) as server:
        service = await made(server, tmp_path / "service")
        with psycopg.connect(
            make_conninfo(server.master, dbname="statesvc"), autocommit=True
        ) as master:
            for name, value in forced.items():
                master.execute("SET ROLE statesvc_owner")
                master.execute(f"ALTER DATABASE statesvc SET {name} = '{value}'".encode())
        async with all_roles(service) as (roles, subscriber):
            async with steady_pushes(service, roles[0], per_second=100) as pushes:
                await until(lambda: len(pushes.answers) >= MESSAGES, 60)
            assert {answer.status for answer in pushes.answers} == {200}
            await until(lambda: subscriber.received >= len(pushes.answers), 60)
            assert await failures(service) == []
            for command in (
                ("verify", "--processes", "2"),
                ("rebuild", "shipment", "--compare"),
                ("rebuild", "shipment"),
                ("migrate",),
            ):
                exit_code, output, errors = await service.run(*command)
                assert exit_code == 0, (command, output, errors)
            for role in roles:
                assert "Traceback" not in role.log.read_text()
            sees_others = await service.value(
                "SELECT pg_has_role('statesvc_service', 'pg_read_all_stats', 'USAGE')"
            )
            assert sees_others is True


async def test_the_guard_says_what_it_needs_and_leaves_nothing_where_that_is_not_there(
    tmp_path: Path,
) -> None:
    async with managed_server(tmp_path, 18) as server:
        service = await made(server, tmp_path / "service")
        async with service:
            _, script, said = await service.run("migrate", "--guard")
        assert "as a superuser: PostgreSQL lets nobody else make event triggers" in said
        database = make_conninfo(server.master, dbname="statesvc")
        ended = server.psql(database, "-1", "-f", "-", text=script)
        assert 'permission denied to create event trigger "statesvc_guard_command"' in ended.stderr
        with psycopg.connect(
            make_conninfo(server.provider, dbname="statesvc"), autocommit=True
        ) as provider:
            left = "SELECT count(*) FROM pg_roles WHERE rolname = 'statesvc_guard'"
            assert provider.execute(left).fetchone() == (0,)
        # a provider that lets its master make them does so as a superuser would; the rest
        # is the master's own work
        with psycopg.connect(database, autocommit=True) as master:
            master.execute(script.partition("DROP EVENT TRIGGER")[0].encode())
        ended = server.psql(
            make_conninfo(server.provider, dbname="statesvc"), "-1", "-f", "-", text=script
        )
        assert ended.returncode == 0, ended.stderr


async def test_a_rotated_password_needs_no_restart_and_no_push_is_lost(tmp_path: Path) -> None:
    async with managed_server(tmp_path, 18) as server:
        secret, passfile = tmp_path / "password", tmp_path / "passfile"
        address = server.dsn("statesvc_service", "")
        address = make_conninfo(
            "",
            **{
                name: value
                for name, value in psycopg.conninfo.conninfo_to_dict(address).items()
                if name != "password"
            },
        )

        def write(password: str) -> None:
            for file, line in ((secret, password), (passfile, f"*:*:*:*:{password}")):
                unfinished = file.with_name("unfinished")
                unfinished.touch(mode=0o600)
                unfinished.write_text(f"{line}\n")
                unfinished.rename(file)

        write("of-the-service")
        service = await made(
            server,
            tmp_path / "service",
            DATABASE_URL=address,
            STATESVC_DATABASE_PASSWORD_COMMAND=f"cat {secret}",
        )
        by_passfile = {"DATABASE_URL": make_conninfo(address, passfile=str(passfile))}
        of_role = {"worker": by_passfile, "notifier": by_passfile}
        async with all_roles(service, of_role) as (roles, subscriber):
            async with steady_pushes(service, roles[0], per_second=30) as pushes:
                await pushes.well_for(2)
                with psycopg.connect(
                    make_conninfo(server.master, dbname="statesvc"), autocommit=True
                ) as master:
                    master.execute("ALTER ROLE statesvc_service PASSWORD 'of-today'")
                    # those that are open stay: what the server drops must log in anew
                    await pushes.well_for(1)
                    with psycopg.connect(server.provider, autocommit=True) as provider:
                        provider.execute(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                            " 'statesvc_service'"
                        )
                    await until(lambda: all_say_that_they_may_not_log_in(roles), 60)
                write("of-today")
                since = asyncio.get_running_loop().time()
                await well_again(pushes, since, within=3)
                assert (await service.run("queue"))[0] == 0
                assert (await service.run("verify", "--processes", "2"))[0] == 0
            expected = len(pushes.acknowledged)
            await until(lambda: subscriber.received >= expected, 60)
            settled = {
                str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.message")
            }
            assert pushes.acknowledged <= settled
        assert [role.role for role in roles] == list(ROLES)


def all_say_that_they_may_not_log_in(roles: Sequence[RoleProcess]) -> bool:
    return all('"cause":"auth"' in role.log.read_text() for role in roles)
