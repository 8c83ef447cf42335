"""Faults of a database that was copied row by row, by logical replication or a data load: no error reports them until data is lost."""

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.database", "copy_faults")


class CopyFaultError(RuntimeError):
    """The service must not start; the message names each fault and the command that repairs it."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))


async def read_copy_faults(connection: AsyncConnection[Any]) -> list[str]:
    """Return one sentence for each fault, with the command that repairs it."""
    return [
        f"the next value of {sequence} is {next_value}, and {column} has values up to {highest}: "
        f"statesvc psql --owner -c \"SELECT setval('{sequence}', {highest})\""
        for sequence, column, next_value, highest in await (
            await connection.execute(_SQL["sequences_behind"])
        ).fetchall()
    ]


async def require_no_copy_faults(connection: AsyncConnection[Any]) -> None:
    """Raise CopyFaultError if there are any."""
    if faults := await read_copy_faults(connection):
        raise CopyFaultError(faults)
