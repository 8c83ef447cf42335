"""Bound of the service's connections: the least that the role's own limit, the database's and
the server's leave it.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.database", "connection_bound")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBound:
    """`connections`: free for us.

    `others`: used by others now. `why`: the setting, and the remedy.
    """

    connections: int
    others: int
    why: str

    @property
    def left(self) -> int:
        return max(0, self.connections - self.others)


async def read_connection_bound(connection: AsyncConnection[Any]) -> ConnectionBound:
    """Read the narrowest bound of the current role."""
    row = await (await connection.execute(_SQL["connection_bound"], prepare=False)).fetchone()
    assert row is not None  # noqa: S101 - the role that asks and its database are there
    role, database, role_limit, database_limit, server_limit, reserved, in_database, on_server = row
    bounds = [
        ConnectionBound(
            connections=server_limit - reserved,
            others=on_server,
            why=(
                f"the server takes {server_limit} (max_connections), {reserved} of them in reserve,"
                f" and other roles have {on_server}"
            ),
        )
    ]
    if role_limit >= 0:
        bounds.append(
            ConnectionBound(
                connections=role_limit,
                others=0,
                why=(
                    f"the role {role} may have {role_limit} (ALTER ROLE {role} CONNECTION LIMIT"
                    " ...)"
                ),
            )
        )
    if database_limit >= 0:
        altered = f"ALTER DATABASE {database} CONNECTION LIMIT ..."
        why = (
            f"the database {database} takes {database_limit} ({altered}), and other roles have"
            f" {in_database}"
        )
        bounds.append(ConnectionBound(connections=database_limit, others=in_database, why=why))
    return min(bounds, key=lambda bound: bound.left)
