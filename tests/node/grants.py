"""The role of a foreign worker, made by the statements of docs/claim-protocol.md."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

PAGE: Final = Path(__file__).parents[2] / "docs" / "claim-protocol.md"
BLOCK: Final = re.compile(r"^ *```sql\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def statements(*, role: str, password: str, database: str, service: str) -> str:
    """Return the page's statements, for a role and a database of other names.

    Anyone may connect in the tests: the service keeps that right.
    """
    (found,) = BLOCK.findall(PAGE.read_text("utf-8"))
    named = (
        re.sub(r"\breader\b", role, found)
        .replace("DATABASE statesvc ", f'DATABASE "{database}" ')
        .replace("'...'", f"'{password}'")
    )
    return f'REVOKE CONNECT ON DATABASE "{database}" FROM PUBLIC;\nGRANT CONNECT ON DATABASE "{database}" TO "{service}";\n{named}'


@asynccontextmanager
async def foreign_role(superuser_dsn: str, service_dsn: str) -> AsyncIterator[str]:
    """Make a role that may do what the page grants, and nothing else; yield its DSN."""
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
