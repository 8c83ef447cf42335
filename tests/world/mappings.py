"""Rows of mapped codes as the add-on `mappings` leaves them, for tests of the core that reads them."""

from typing import Any

from psycopg import AsyncConnection

from events.parsing.meanings import Meaning


async def store_mapping(
    connection: AsyncConnection[Any],
    code: tuple[str, str | None, str | None],
    meaning: Meaning | None,
) -> None:
    """Add a row. `code`: (carrier_id, type, code) as the log has them; `meaning` None: no longer."""
    row = (*code, *((meaning.kind, meaning.status, meaning.reason) if meaning else (None,) * 3))
    await connection.execute(
        "INSERT INTO statesvc.code_mapping (revision, carrier_id, raw_type, raw_code, kind, status,"
        " reason, added_at, added_by, why) SELECT coalesce(max(revision), 0) + 1, %s, %s, %s, %s,"
        " %s, %s, statesvc.clock(), 'tester', '' FROM statesvc.code_mapping",
        row,
    )
