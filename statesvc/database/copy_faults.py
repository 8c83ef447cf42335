"""Faults of a database that was copied row by row, by logical replication or a data load: no error
reports them until data is lost.

Sequences are behind their columns, and triggers do not fire.
"""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.database.session_settings import how_to_reset

_NAMED_MAX: Final = 3

_SQL = queries("statesvc.database", "copy_faults")


class CopyFaultError(RuntimeError):
    """The service must not start; the message names each fault and the command that repairs it."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))


async def read_copy_faults(connection: AsyncConnection[Any]) -> list[str]:
    """Return a sentence for each fault, with the command that repairs it."""
    rows = await (await connection.execute(_SQL["sequences_behind"])).fetchall()
    return [*(sequence_fault(*row) for row in rows), *await read_trigger_faults(connection)]


def sequence_fault(sequence: str, column: str, next_value: int, highest: int) -> str:
    return (
        f"the next value of {sequence} is {next_value}, and {column} has values up to {highest}: "
        f"statesvc psql --owner -c \"SELECT setval('{sequence}', {highest})\""
    )


async def read_trigger_faults(connection: AsyncConnection[Any]) -> list[str]:
    """Return why triggers do not fire, and how they do again."""
    faults = [
        f"session_replication_role is {setting}, so foreign keys do not fire: "
        f"{how_to_reset('session_replication_role', source)}"
        for setting, source in await (await connection.execute(_SQL["replication_role"])).fetchall()
    ]
    silent = await (await connection.execute(_SQL["silent_triggers"])).fetchall()
    if ours := [f"{name} on {table}" for table, name, is_internal in silent if not is_internal]:
        more = f" and {len(ours) - _NAMED_MAX:,} more" if len(ours) > _NAMED_MAX else ""
        named = f"{', '.join(ours[:_NAMED_MAX])}{more}"
        faults.append(f"triggers are disabled ({named}): `statesvc migrate` enables them")
    return faults + [
        f"foreign keys of {table} are disabled: as a superuser, ALTER TABLE {table} ENABLE TRIGGER"
        " ALL, then `statesvc migrate`"
        for table in dict.fromkeys(table for table, _, is_internal in silent if is_internal)
    ]


async def require_no_copy_faults(connection: AsyncConnection[Any]) -> None:
    if faults := await read_copy_faults(connection):
        raise CopyFaultError(faults)
