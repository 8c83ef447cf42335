"""Causes of failed connections, to servers and addresses that refuse them in their own ways."""

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from statesvc.database.sql_errors import ConnectionCause, connection_cause
from tests.world.ports import free_port
from tests.world.postgres import Server

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


@pytest.mark.parametrize("cause", WRONG)
async def test_a_connection_that_fails_says_why(database: Server, cause: ConnectionCause) -> None:
    with pytest.raises(psycopg.OperationalError) as raised:
        await AsyncConnection.connect(WRONG[cause](database), connect_timeout=5)
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
    database: Server,
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute("SELECT nonsense")
        assert connection_cause(raised.value) is None
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert connection_cause(raised.value) is ConnectionCause.LOST


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
