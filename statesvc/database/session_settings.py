"""Settings of each session, whatever role, database or environment set: our SQL relies on them.

Set on the session in a statement after the login, not in the startup packet: PgBouncer refuses
`options` there. The encoding alone is part of the login (`service_connection`), because the answers
depend on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection, Connection, IsolationLevel

from statesvc.database.queries import queries

SESSION_SETTINGS: Final[Mapping[LiteralString, LiteralString]] = MappingProxyType(
    {
        "DateStyle": "ISO, MDY",
        "TimeZone": "UTC",
        "standard_conforming_strings": "on",
        "IntervalStyle": "postgres",
        "bytea_output": "hex",
        "extra_float_digits": "1",
        "array_nulls": "on",
        "transform_null_equals": "off",
        "quote_all_identifiers": "off",
        "exit_on_error": "off",
        # months of the log are left out by their bounds alone: by default the planner also tries to
        # refute the CHECK constraints of each table that it looks into, which took a tenth of what
        # a page of the feed cost the server
        "constraint_exclusion": "off",
    }
)
ISOLATION: Final[LiteralString] = "default_transaction_isolation"
READ_COMMITTED: Final[LiteralString] = "read committed"
# The server reports these, so a pooler in transaction mode sets them on each server connection that
# it gives this client.
CARRIED_BY_POOLERS: Final = frozenset({"DateStyle", "TimeZone", "standard_conforming_strings"})
# Settings of each transaction behind a pooler: all of them, for any server connection.
TRANSACTION_SETTINGS: Final[Mapping[LiteralString, LiteralString]] = MappingProxyType(
    {name: setting for name, setting in SESSION_SETTINGS.items() if name not in CARRIED_BY_POOLERS}
)
# Begins a transaction that is ours whatever the server connection has as its default.
BEGIN: Final[LiteralString] = f"BEGIN ISOLATION LEVEL {READ_COMMITTED}"
WHOLE_TRANSACTIONS_SINCE: Final = 17_00_00
# Time that a server gets beyond its own limits to say that they are over.
ANSWER_MARGIN_SECONDS: Final = 2.0

# Remedies by the source that PostgreSQL names for a setting.
_RESET_BY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "database": "`ALTER DATABASE ... RESET {setting}` ends it",
        "user": "`ALTER ROLE ... RESET {setting}` ends it",
        "database user": "`ALTER ROLE ... IN DATABASE ... RESET {setting}` ends it",
        "configuration file": (
            "`ALTER SYSTEM RESET {setting}` (or postgresql.conf) and `SELECT pg_reload_conf()`"
            " end it"
        ),
    }
)

_SQL = queries("statesvc.database", "session_settings")


def how_to_reset(setting: str, source: str) -> str:
    """Say how a setting of a role, a database or the server ends. `source` as in pg_settings."""
    default = f"it was set by the {source}: take it out there"
    return _RESET_BY.get(source, default).format(setting=setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Limits of a session. 0: as long as it takes."""

    statement_seconds: float = 0.0
    lock_seconds: float = 0.0
    idle_in_transaction_seconds: float = 0.0
    transaction_seconds: float | None = None
    """Limit of a whole transaction.

    A client that stops inside a pipeline is not idle to PostgreSQL: only this limit
    ends it (PostgreSQL 17).
    """

    @property
    def answer_seconds(self) -> float | None:
        """Time without an answer after which the client hangs up: the server's own limits would
        have ended it. None: it waits.
        """
        if not self.statement_seconds:
            return None
        # the longer of both: in a pipeline the first answer may come with the end of the
        # transaction
        return max(self.statement_seconds, self.transaction_seconds or 0.0) + ANSWER_MARGIN_SECONDS

    def timeouts(self, *, server_version: int) -> dict[LiteralString, int]:
        """Return the settings of a server of this version, in milliseconds."""
        limits: dict[LiteralString, float] = {
            "statement_timeout": self.statement_seconds,
            "lock_timeout": self.lock_seconds,
            "idle_in_transaction_session_timeout": self.idle_in_transaction_seconds,
        }
        # an older server refuses the unknown name, and with it the whole statement
        if server_version >= WHOLE_TRANSACTIONS_SINCE:
            limits["transaction_timeout"] = self.transaction_seconds or 0.0
        return {name: round(seconds * 1000) for name, seconds in limits.items()}

    def settings(self, *, server_version: int) -> dict[str, str]:
        """Return all settings of a session that is ours alone."""
        timeouts = {
            name: str(milliseconds)
            for name, milliseconds in self.timeouts(server_version=server_version).items()
        }
        return {
            **SESSION_SETTINGS,
            ISOLATION: READ_COMMITTED,
            # a pool's idle connections are meant to stay; a role's default must not end them
            "idle_session_timeout": "0",
            **timeouts,
        }


async def prepare_session(connection: AsyncConnection[Any], limits: SessionLimits) -> None:
    """Prepare our session in a round trip."""
    await connection.execute(
        _SQL["set"],
        setting_arrays(limits.settings(server_version=connection.info.server_version)),
        prepare=False,
    )


def prepare_sync_session(connection: Connection[Any], limits: SessionLimits) -> None:
    """Prepare our session in a round trip."""
    connection.execute(
        _SQL["set"],
        setting_arrays(limits.settings(server_version=connection.info.server_version)),
        prepare=False,
    )


async def prepare_pooled_session(connection: AsyncConnection[Any]) -> None:
    """Prepare a session through a pooler in transaction mode; each transaction sets the rest."""
    await connection.execute(
        _SQL["set"],
        setting_arrays({name: SESSION_SETTINGS[name] for name in CARRIED_BY_POOLERS}),
        prepare=False,
    )
    # psycopg says it with each BEGIN
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)


def setting_arrays(settings: Mapping[str, str]) -> dict[str, list[str]]:
    return {"names": list(settings), "settings": list(settings.values())}
