"""Errors of the database: what they mean, and in what words a person is told."""

import asyncio
import re
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.adapt import PyFormat, Transformer
from psycopg.conninfo import make_conninfo

from statesvc.database.queries import Encoder, bools, byteas, ints, texts, timestamps, uuids
from statesvc.database.sql_errors import ConnectionCause, Failure, advice, connection_cause, failure
from tests.world.ports import free_port
from tests.world.postgres import Server
from tests.world.shell import Shell

PARCEL = (
    "CREATE TEMP TABLE parcel (number int PRIMARY KEY CHECK (number > 0)); INSERT INTO parcel"
    " VALUES (1);"
)


async def test_an_error_of_the_server_has_its_meaning(database: Any) -> None:
    for statement, expected in (
        ("UPDATE statesvc.event SET carrier_id = 'x'", Failure.IMMUTABLE),
        ("TRUNCATE statesvc.transition", Failure.IMMUTABLE),
        (f"{PARCEL} INSERT INTO parcel VALUES (1)", Failure.DUPLICATE),
        (f"{PARCEL} INSERT INTO parcel VALUES (-1)", Failure.REFUSED_DATA),
        ("SELECT 'x'::int", Failure.REFUSED_DATA),
        ("SET statement_timeout = 1; SELECT pg_sleep(1)", Failure.TRANSIENT),
        ("SELECT pg_terminate_backend(pg_backend_pid())", Failure.UNAVAILABLE),
        ("SELECT nonsense", Failure.DEFECT),
        ("EXECUTE nothing_prepared", Failure.MISROUTED),
        ("PREPARE twice AS SELECT 1; PREPARE twice AS SELECT 1", Failure.MISROUTED),
    ):
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
            with pytest.raises(psycopg.Error) as raised:
                await connection.execute(statement)
        assert failure(raised.value) is expected, statement


async def test_a_plan_that_a_migration_outdated_comes_with_what_to_do(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    await owner.execute("CREATE TABLE public.parcel (number int)")
    await owner.execute("TABLE public.parcel", prepare=True)
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as migration:
        await migration.execute("ALTER TABLE public.parcel ADD COLUMN carrier text")
    with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
        await owner.execute("TABLE public.parcel", prepare=True)
    assert "restart" in (advice(raised.value) or "")


WRONG: dict[ConnectionCause, Callable[[Server], str]] = {
    ConnectionCause.AUTH: lambda server: make_conninfo(server.service_dsn, password="wrong"),
    ConnectionCause.TLS: lambda server: make_conninfo(
        server.service_dsn, host="127.0.0.1", sslmode="require"
    ),
    ConnectionCause.DNS: lambda server: make_conninfo(
        server.service_dsn, host="no-such-host.invalid"
    ),
    ConnectionCause.REFUSED: lambda server: make_conninfo(
        server.service_dsn, host="127.0.0.1", port=free_port()
    ),
    ConnectionCause.NO_DATABASE: lambda server: make_conninfo(
        server.service_dsn, dbname="there_is_none"
    ),
    ConnectionCause.READ_ONLY: lambda server: make_conninfo(
        server.owner_dsn,
        options="-c default_transaction_read_only=on",
        target_session_attrs="read-write",
    ),
}


async def test_a_connection_that_fails_says_why(database: Server) -> None:
    for cause, wrong in WRONG.items():
        with pytest.raises(psycopg.OperationalError) as raised:
            await AsyncConnection.connect(wrong(database), connect_timeout=5)
        assert connection_cause(raised.value) is cause, str(raised.value)


async def test_a_role_that_has_all_its_connections_is_at_its_limit(
    server: Server, database: Server
) -> None:
    name = f"limited_{uuid4().hex[:12]}"
    async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin:
        await admin.execute(
            f"CREATE ROLE {name} LOGIN PASSWORD 'x' CONNECTION LIMIT 0 IN ROLE"
            " statesvc_service".encode()
        )
        try:
            with pytest.raises(psycopg.OperationalError) as raised:
                await AsyncConnection.connect(
                    make_conninfo(database.service_dsn, user=name, password="x")
                )
        finally:
            await admin.execute(f"DROP ROLE {name}".encode())
    assert connection_cause(raised.value) is ConnectionCause.LIMIT


async def test_a_session_that_was_ended_is_lost_and_a_wrong_statement_is_no_matter_of_connections(
    owner: AsyncConnection[Any],
) -> None:
    for statement, cause in (
        ("SELECT nonsense", None),
        ("SELECT pg_terminate_backend(pg_backend_pid())", ConnectionCause.LOST),
    ):
        with pytest.raises(psycopg.Error) as raised:
            await owner.execute(statement)
        assert connection_cause(raised.value) is cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "u",'
                ' database "d", no encryption'
            ),
            ConnectionCause.TLS,
        ),
        (
            (
                'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "u",'
                ' database "d", SSL encryption'
            ),
            ConnectionCause.AUTH,
        ),
        ("connection failed: FATAL:  PAM authentication failed for user", ConnectionCause.AUTH),
        ("connection failed: FATAL:  sorry, too many clients already", ConnectionCause.LIMIT),
        (
            (
                "connection failed: FATAL:  remaining connection slots are reserved for roles with"
                " the SUPERUSER attribute"
            ),
            ConnectionCause.LIMIT,
        ),
        ("connection failed: FATAL:  the database system is starting up", ConnectionCause.STARTING),
        ("connection timeout expired", ConnectionCause.TIMEOUT),
        ("something else", None),
    ],
)
def test_words_of_managed_servers_are_known(text: str, cause: ConnectionCause | None) -> None:
    assert connection_cause(psycopg.OperationalError(text)) is cause


COCKROACH = {"server_version": "13.0.0", "crdb_version": "CockroachDB CCL v25.4.1 (x86_64)"}
YUGABYTE = {"server_version": "15.12-YB-2025.2.5.0-b0"}


@asynccontextmanager
async def server_that_reports(statuses: dict[str, str]) -> AsyncIterator[str]:
    """Let everybody log in and report these parameters, as the first bytes of the
    protocol; return the DSN.
    """

    async def log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        messages = [
            (b"R", bytes(4)),
            *((b"S", f"{name}\0{value}\0".encode()) for name, value in statuses.items()),
            (b"Z", b"I"),
        ]
        writer.write(
            b"".join(kind + struct.pack("!i", len(body) + 4) + body for kind, body in messages)
        )
        await reader.read()
        writer.close()

    async with await asyncio.start_server(log_in, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield (
            f"postgresql://u@127.0.0.1:{port}/statesvc"
            "?sslmode=disable&gssencmode=disable&target_session_attrs=any"
        )


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        (COCKROACH, "this is CockroachDB CCL v25.4.1 (x86_64), which lacks LISTEN and NOTIFY"),
        (YUGABYTE, "this is YugabyteDB 15.12-YB-2025.2.5.0-b0, whose NOTIFY"),
    ],
)
async def test_migrate_and_doctor_refuse_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, statuses: dict[str, str], sentence: str
) -> None:
    async with server_that_reports(statuses) as dsn:
        monkeypatch.setenv("DATABASE_URL", dsn)
        monkeypatch.setenv("STATESVC_OWNER_URL", dsn)
        assert f"statesvc: {sentence}" in await shell("migrate", exit_code=1)
        doctor = await shell("doctor", exit_code=1)
        assert re.search(f"^FAIL  server +{re.escape(sentence)}", doctor, re.MULTILINE)


COLUMNS: dict[str, tuple[Encoder, list[Any]]] = {
    "uuid": (uuids, [UUID(int=0), UUID(int=2**128 - 1), UUID(int=7)]),
    "text": (texts, ["", "Übach \U0001f4e6", None, 'quote " and {comma,}', "x" * 10_000]),
    "bytea": (byteas, [b"", None, bytes(range(256)), b"x" * 10_000]),
    "bool": (bools, [True, False, True]),
    "timestamptz": (
        timestamps,
        [
            None,
            datetime(2026, 3, 1, 14, 5, 0, 123456, tzinfo=timezone(timedelta(hours=-5))),
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_is_what_psycopg_sends(kind: str) -> None:
    encode, members = COLUMNS[kind]
    (expected,) = Transformer(psycopg.adapters).dump_sequence([members], [PyFormat.BINARY])
    assert expected is not None
    dimensions_and_nulls = 8
    assert encode(members)[dimensions_and_nulls:] == bytes(expected)[dimensions_and_nulls:]


def test_numbers_are_of_the_width_that_the_queries_cast_to() -> None:
    wide = [2**31 - 1, -(2**31), 2**20]
    (expected,) = Transformer(psycopg.adapters).dump_sequence(
        [[2**31 - 1, -(2**31), 2**20]], [PyFormat.BINARY]
    )
    assert ints(wide)[20:] == bytes(expected or b"")[20:]
