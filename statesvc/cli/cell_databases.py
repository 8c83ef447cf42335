"""The databases of cells, by the environment variables that the directory names."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from statesvc.cells.directory import CellDirectory
from statesvc.cli.command_error import CommandError
from statesvc.cli.session import connect


def address_of(directory: CellDirectory, name: str) -> str | None:
    """Return the address of the cell's database; None where the directory names none. Raises CommandError where the variable is not set."""
    variable = directory.cells[name].database
    return None if variable is None else address_in(variable)


def address_in(variable: str) -> str:
    """Return the address of a database in this environment variable. Raises CommandError where it is not set."""
    dsn = os.environ.get(variable, "").strip()
    if not dsn:
        raise CommandError(
            f"{variable} is not set: it holds the address of a cell's database", exit_code=2
        )
    return dsn


@asynccontextmanager
async def all_databases(directory: CellDirectory) -> AsyncIterator[dict[str, AsyncConnection[Any]]]:
    """Open a connection to each cell's database, by name. Raises CommandError unless there is one for every cell."""
    dsns = {name: address_of(directory, name) for name in directory.cells}
    if unnamed := sorted(name for name, dsn in dsns.items() if dsn is None):
        raise CommandError(
            f'the directory names no database for {", ".join(unnamed)}: add `database = "VARIABLE"` there',
            exit_code=2,
        )
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(await connect(dsn))
            for name, dsn in dsns.items()
            if dsn is not None
        }
