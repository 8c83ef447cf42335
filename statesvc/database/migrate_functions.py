"""Applying files of functions: what the last text of a file made is dropped, then the new text is run.

So a database that was upgraded has the very functions of a new one, whatever became of their signatures, and none that no file has any
more. A call that comes meanwhile waits for nothing and finds either the old functions or the new ones.
"""

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from statesvc.database.migration_files import FunctionFile
from statesvc.database.queries import queries

_SQL = queries("statesvc.database", "migrator")


async def apply_functions(connection: AsyncConnection[Any], files: Sequence[FunctionFile]) -> None:
    """All of them, or none."""
    async with connection.transaction():
        await connection.execute(_SQL["qualify_names"])
        replaced = await _signatures(connection, _SQL["functions_of_files"], {"files": [file.name for file in files]})
        if replaced:
            # in one statement, because they may depend on each other
            await connection.execute(f"DROP ROUTINE {', '.join(sorted(replaced))}".encode())
        for file in files:
            before = await _signatures(connection, _SQL["functions"])
            await connection.execute(file.text.encode())
            made = await _signatures(connection, _SQL["functions"]) - before
            await connection.execute(_SQL["record_functions"], {"file": file.name, "sha256": file.sha256, "functions": sorted(made)})


async def _signatures(connection: AsyncConnection[Any], query: LiteralString, parameters: dict[str, object] | None = None) -> set[str]:
    return {signature async for (signature,) in await connection.execute(query, parameters)}
