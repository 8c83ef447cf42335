"""A PgBouncer of a test's own, in transaction mode, between the service and the test server."""

import asyncio
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.world.ports import free_port
from tests.world.programs import required

EVERYWHERE = os.environ.get("STATESVC_TEST_PGBOUNCER") == "1"
"""True if every service of the acceptance tests works behind a pooler."""
START_SECONDS = 10


def can_carry_prepared_statements() -> bool:
    """Return whether it can: since 1.21, where it is told how many."""
    told = subprocess.run(
        [required("pgbouncer", "pgbouncer"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    version = re.search(r"(\d+)\.(\d+)", told)
    return version is not None and (int(version[1]), int(version[2])) >= (1, 21)


@asynccontextmanager
async def between(service_dsn: str, *, wanted: bool = EVERYWHERE) -> AsyncIterator[dict[str, str]]:
    """Return the settings of a service behind a pooler in transaction mode; none
    where it is not `wanted`.
    """
    if not wanted:
        yield {}
        return
    async with pooled(service_dsn) as (through,):
        yield {
            "DATABASE_URL": through,
            "STATESVC_LISTEN_URL": service_dsn,
            "STATESVC_PREPARED_STATEMENTS": "false",
        }


@asynccontextmanager
async def pooled(
    *dsns: str, mode: str = "transaction", prepared_max: int = 0
) -> AsyncIterator[list[str]]:
    """Put a pooler before these databases and roles, for the time of the block."""
    program = required("pgbouncer", "pgbouncer")
    folder = Path(mkdtemp(prefix="statesvc-pgbouncer-"))
    targets = [conninfo_to_dict(dsn) for dsn in dsns]
    port = free_port()
    users = {f'"{target["user"]}" "{target.get("password", "")}"' for target in targets}
    (folder / "users.txt").write_text("\n".join(sorted(users)) + "\n")
    first = targets[0]
    (folder / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"* = host={_tcp(str(first['host']))} port={first.get('port') or 5432}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder}/users.txt\n"
        f"pool_mode = {mode}\ndefault_pool_size = 20\nmax_client_conn = 500\n"
        f"{f'max_prepared_statements = {prepared_max}' if can_carry_prepared_statements() else ''}"
        "\n"
        # a server that comes back is tried again at once
        "server_login_retry = 1\n"
        # one test may leave many services, each with its pooler
        "server_idle_timeout = 2\n"
        f"logfile = {folder}/log\nlog_connections = 0\nlog_disconnections = 0\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(program, *_as_another_user(folder), str(folder / "pgbouncer.ini")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    through = [make_conninfo(dsn, host="127.0.0.1", port=port) for dsn in dsns]
    try:
        await _answers(through[0], process)
        yield through
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        shutil.rmtree(folder)


def _tcp(host: str) -> str:
    """Return the server's TCP address: its socket lets only the server's own user in."""
    return "127.0.0.1" if host.startswith("/") else host


def _as_another_user(folder: Path) -> list[str]:
    """Return the command that runs it as another user: it refuses to run as root."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return ["-u", nobody.pw_name]


async def _answers(dsn: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            assert process.returncode is None, "PgBouncer did not start"
            try:
                async with await AsyncConnection.connect(dsn, prepare_threshold=None) as connection:
                    await connection.execute("SELECT 1")
                    return
            except psycopg.OperationalError:
                await asyncio.sleep(0.05)
