"""The session of the leading sealer, as others see it.

A leader queries at each sweep; silence is a fault.
"""

from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.database.queries import queries

# Above the pause between two sweeps, and a pass.
SILENT_SECONDS: Final = 45.0

_SQL = queries("statesvc.sealer", "lead")


class SilentLead(NamedTuple):
    """`pid`: of the server's process."""

    pid: int
    seconds: float

    @property
    def sentence(self) -> str:
        return (
            f"the session of process {self.pid} on the database's server leads the sealers and has"
            f" been silent for {self.seconds:,.0f} s. Another sealer ends it with"
            f" pg_terminate_backend({self.pid}); where that does not help the process is stopped:"
            f" `kill -CONT {self.pid}` there, or restart the server"
        )


async def silent_lead(
    connection: AsyncConnection[Any],
    *,
    silent_seconds: float = SILENT_SECONDS,
    lost_pid: int | None = None,
) -> SilentLead | None:
    """Return the leader if it has been silent for that long; None: no leader, or a working one."""
    parameters = {"silent_seconds": silent_seconds, "lost_pid": lost_pid}
    row = await (await connection.execute(_SQL["silent_lead"], parameters)).fetchone()
    return None if row is None else SilentLead(*row)


async def end_session(connection: AsyncConnection[Any], lead: SilentLead) -> None:
    """End the session, unless its process is stopped."""
    await connection.execute(_SQL["end_session"], {"pid": lead.pid})
