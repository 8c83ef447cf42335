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
    rows = await (await connection.execute(_SQL["sequences_behind"])).fetchall()
    return [sequence_fault(*row) for row in rows]


def sequence_fault(sequence: str, column: str, next_value: int, highest: int) -> str:
    """Say that a sequence is behind its column."""
    return (
        f"the next value of {sequence} is {next_value}, and {column} has values up to {highest}: "
        f"statesvc psql --owner -c \"SELECT setval('{sequence}', {highest})\""
    )


async def require_no_copy_faults(connection: AsyncConnection[Any]) -> None:
    """Raise CopyFaultError if there are any."""
    if faults := await read_copy_faults(connection):
        raise CopyFaultError(faults)
