"""The guard of the log's tables: event triggers that refuse unannounced changes of their definition. Only a superuser can make them."""

from importlib.resources import files
from typing import Final

from psycopg import AsyncConnection

from statesvc.database.pool import CONNECT_TIMEOUT_SECONDS

TRIGGERS: Final = ("statesvc_guard_command", "statesvc_guard_drop", "statesvc_guard_rewrite")


def guard_script() -> str:
    """The SQL that makes them; for `psql` as a superuser on the migrated database. May run again."""
    return (files("statesvc.database") / "log_guard.sql").read_text("utf-8")


async def install_guard(superuser_dsn: str) -> None:
    """Makes them, or brings them to this release, in one transaction."""
    async with await AsyncConnection.connect(
        superuser_dsn, application_name="statesvc guard", prepare_threshold=None, connect_timeout=CONNECT_TIMEOUT_SECONDS
    ) as connection:
        await connection.execute(guard_script().encode())
