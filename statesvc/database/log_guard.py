"""The guard of the log's tables: event triggers that refuse unannounced changes of their
definition. Only a superuser can make them.
"""

from importlib.resources import files
from typing import Final

from statesvc.database.open_connection import open_connection

TRIGGERS: Final = ("statesvc_guard_command", "statesvc_guard_drop", "statesvc_guard_rewrite")


def guard_script() -> str:
    """Return the SQL that makes them; for `psql` as a superuser on the migrated database.

    May run again.
    """
    return (files("statesvc.database") / "log_guard.sql").read_text("utf-8")


async def install_guard(superuser_dsn: str) -> None:
    """Create or update the guards in a transaction."""
    async with (
        await open_connection(superuser_dsn, application_name="statesvc guard") as connection,
        connection.transaction(),
    ):
        await connection.execute(guard_script().encode())
