"""The role of a foreign worker, with the grants of `statesvc keys inbox`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

GRANTS: Final = Path(__file__).parents[2] / "statesvc" / "cli" / "fleet_role.sql"


def statements(*, role: str, password: str, database: str, service: str) -> str:
    """Return the command's statements, for a database to which not anyone may connect: the
    service keeps that right.
    """
    granted = GRANTS.read_text("utf-8").format(role=role, database=f'"{database}"')
    return (
        f'REVOKE CONNECT ON DATABASE "{database}" FROM PUBLIC;\nGRANT CONNECT ON DATABASE'
        f' "{database}" TO "{service}";\n'
        f"CREATE ROLE {role} LOGIN PASSWORD '{password}';\n{granted}"
    )


@asynccontextmanager
async def foreign_role(superuser_dsn: str, service_dsn: str) -> AsyncIterator[str]:
    """Make a role that may do what the command grants, and nothing else; yield its DSN."""
    role, password = f"reader_{uuid4().hex}", "for-tests-only"
    async with await AsyncConnection.connect(superuser_dsn, autocommit=True) as connection:
        of_service = conninfo_to_dict(service_dsn)
        asked = statements(
            role=role,
            password=password,
            database=str(of_service["dbname"]),
            service=str(of_service["user"]),
        )
        await connection.execute(asked.encode())
        try:
            yield make_conninfo(service_dsn, user=role, password=password)
        finally:
            await connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
