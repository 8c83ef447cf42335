"""The PostgreSQL server of a test run: one for all xdist workers, with a migrated template database
whose clock can be moved.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection, Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.addons.demo.movable_clock import MOVABLE_CLOCK
from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from statesvc.database.postmaster import running_pid
from tests.world.ports import free_port

MAJOR = int(os.environ.get("STATESVC_TEST_PG", "18"))
FOLDER_VARIABLE = "STATESVC_TEST_FOLDER"
FOLDER_PREFIX = "statesvc-test-"
TEMPLATE = "statesvc_template"
OVERRIDES = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "min_wal_size": "80MB",
    "max_wal_size": "512MB",
    "max_connections": "200",
    "checkpoint_timeout": "1h",
    "max_prepared_transactions": "10",
    # a vacuum or ANALYZE keeps a snapshot: what a claim then reads cannot be counted
    "autovacuum_naptime": "1d",
    # a connection costs its client 3 ms at the default, and a run opens ten thousand
    "scram_iterations": "1",
}
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder with a random name is made in it
MEMORY_BYTES_MIN = 4 * 1024**3
_superusers: dict[str, Connection[Any]] = {}
_administration = ThreadPoolExecutor(1, "databases")
_spares: dict[tuple[str, str], Future[str]] = {}
"""The next copy of each template, by the superuser's address."""
_started: dict[Path, EmbeddedServer] = {}
"""By this process: it holds their locks."""
_PASSWORD = "for-tests-only"


@dataclass(frozen=True)
class Server:
    """Conninfos of the maintenance database as superuser, and of any database per role."""

    superuser_dsn: str
    owner_dsn: str
    service_dsn: str
    auditor_dsn: str = ""

    def on(self, database: str) -> "Server":
        roles = (self.superuser_dsn, self.owner_dsn, self.service_dsn, self.auditor_dsn)
        return Server(*(make_conninfo(dsn, dbname=database) for dsn in roles))


def claim_folder() -> None:
    """Claim the folder; called by the controller before it starts workers: they inherit
    where to find the server.
    """
    _end_servers_of_dead_runs()
    os.environ[FOLDER_VARIABLE] = str(_new_folder())


def release_folder() -> None:
    folder = Path(os.environ.pop(FOLDER_VARIABLE))
    _end(folder)


def running_server() -> Server:
    """Return the run's server; it is started by the first who asks."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    with _locked(folder / "starting"):
        told = folder / "server.json"
        if not told.exists():
            server = _external() or _embedded(folder)
            asyncio.run(_make_template(server))
            told.write_text(json.dumps(asdict(server)))
        return Server(**json.loads(told.read_text()))


@contextmanager
def own_server() -> Iterator[Server]:
    """Run a server of one test's own, for what would disturb the others: processes of the
    server that are stopped.
    """
    folder = _new_folder()
    with ExitStack() as stack:
        stack.callback(_end, folder)
        server = _embedded(folder)
        asyncio.run(_make_template(server))
        yield server
        close_connections()


def create_database(server: Server, template: str = TEMPLATE) -> str:
    """Return the copy of the template that was made while the test before ran, and
    have the next one made.
    """
    key = (server.superuser_dsn, template)
    if key not in _spares:
        _spares[key] = _administration.submit(_new_copy, *key)
    name = _spares[key].result()
    _spares[key] = _administration.submit(_new_copy, *key)
    return name


def drop_database(server: Server, name: str) -> Future[None]:
    """Drop it while the next test runs."""
    return _administration.submit(_drop, server.superuser_dsn, name)


def _new_copy(superuser_dsn: str, template: str) -> str:
    name = f"test_{uuid4().hex}"
    _copy(superuser_dsn, template, name)
    return name


async def fill_database(
    superuser_dsn: str, content: str, fill: Callable[[str], Awaitable[None]]
) -> None:
    """Replace this migrated database by one that `fill` has filled, given its name: once a run,
    then it is copied like the template.

    `content` names what is in it. Nobody stays connected to this database.
    """
    name, filled, folder = (
        str(conninfo_to_dict(superuser_dsn)["dbname"]),
        f"{TEMPLATE}_{content}",
        Path(os.environ[FOLDER_VARIABLE]),
    )
    superuser = make_conninfo(superuser_dsn, dbname="postgres")
    with _locked(folder / content):
        if not (folder / content).read_text():
            _drop(superuser, filled)
            _copy(superuser, TEMPLATE, filled)
            await fill(filled)
            (folder / content).write_text("filled")
    _drop(superuser, name)
    _copy(superuser, filled, name)


def close_connections() -> None:
    """Drop what nobody took, and close the connections of this process, when it
    needs no more databases.
    """
    while _spares:
        (superuser_dsn, _), spare = _spares.popitem()
        _administration.submit(_drop, superuser_dsn, spare.result())
    _administration.submit(int).result()
    while _superusers:
        _superusers.popitem()[1].close()


def _superuser(dsn: str) -> Connection[Any]:
    """Open one connection for all databases that this process makes and drops: a new one would cost
    a third as much as a copy.
    """
    if dsn not in _superusers or _superusers[dsn].closed:
        _superusers[dsn] = Connection.connect(dsn, autocommit=True)
    return _superusers[dsn]


def _copy(superuser_dsn: str, template: str, name: str) -> None:
    _superuser(superuser_dsn).execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER statesvc_owner STRATEGY file_copy").format(
            sql.Identifier(name), sql.Identifier(template)
        )
    )


def _drop(superuser_dsn: str, name: str) -> None:
    _superuser(superuser_dsn).execute(
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    )


def _external() -> Server | None:
    dsn = os.environ.get("TEST_DATABASE_URL")
    if not dsn:
        return None
    asyncio.run(_make_roles(dsn))
    return Server(
        superuser_dsn=dsn,
        owner_dsn=make_conninfo(dsn, user="statesvc_owner", password=_PASSWORD),
        service_dsn=make_conninfo(dsn, user="statesvc_service", password=_PASSWORD),
        auditor_dsn=make_conninfo(dsn, user="statesvc_auditor", password=_PASSWORD),
    )


def _embedded(folder: Path) -> Server:
    _started[folder] = EmbeddedServer(
        folder / "data", major=MAJOR, tcp_port=free_port(), overrides=OVERRIDES
    )
    dsns = _started[folder].start()
    assert dsns.superuser is not None
    assert dsns.auditor is not None
    server = Server(
        superuser_dsn=dsns.superuser,
        owner_dsn=dsns.owner,
        service_dsn=dsns.service,
        auditor_dsn=dsns.auditor,
    ).on("postgres")
    _shorten_login(server.superuser_dsn)
    return server


def _shorten_login(superuser_dsn: str) -> None:
    """Shorten the login: initdb set this password before `scram_iterations` was known; the
    other roles came later.
    """
    with Connection.connect(superuser_dsn, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(
                sql.Literal(connection.info.password)
            )
        )


async def _make_roles(dsn: str) -> None:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        for role in ("statesvc_owner", "statesvc_service", "statesvc_auditor"):
            cursor = await connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
            verb = "ALTER" if await cursor.fetchone() else "CREATE"
            await connection.execute(
                sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                    sql.SQL(verb), sql.Identifier(role), sql.Literal(_PASSWORD)
                )
            )


async def _make_template(server: Server) -> None:
    async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as connection:
        await connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(TEMPLATE))
        )
        await connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER statesvc_owner").format(sql.Identifier(TEMPLATE))
        )
    template = server.on(TEMPLATE)
    await migrate(template.owner_dsn, template.service_dsn)
    async with await AsyncConnection.connect(template.owner_dsn, autocommit=True) as connection:
        await connection.execute(MOVABLE_CLOCK.encode())


def root() -> Path | None:
    """Return a folder in memory where there is room: a database is copied for each test,
    hundreds of small files.
    """
    is_roomy = (
        MEMORY.is_dir()
        and os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    )
    return MEMORY if is_roomy else None


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=root()))


def kill_all(data: Path) -> None:
    """Send SIGKILL to the server on this data folder and all of its processes: as if
    its machine were gone.
    """
    pid = running_pid(data)
    assert pid is not None
    children = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    for member in (pid, *map(int, children.split())):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def _end_servers_of_dead_runs() -> None:
    for folder in chain.from_iterable(
        root.glob(f"{FOLDER_PREFIX}*-*") for root in (Path(tempfile.gettempdir()), MEMORY)
    ):
        pid = folder.name.split("-")[2]
        if pid.isdigit() and not _lives(int(pid)) and os.access(folder, os.W_OK):
            _end(folder)


def _end(folder: Path) -> None:
    if (folder / "data").exists():
        started = _started.pop(folder, None) or EmbeddedServer(folder / "data", major=MAJOR)
        started.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
