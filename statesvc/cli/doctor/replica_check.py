"""The check of STATESVC_REPLICA_URL: whether a standby is there, and how far behind it is."""

from typing import Final

import psycopg

from statesvc.cli.session import connect
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, ok, warn

STALE_SECONDS: Final = 30.0
"""Above the pauses between the heartbeats of the processes, so that something is held up."""

_SQL = queries("statesvc.database", "replica")
_ABOUT: Final = "replica"
_MEANWHILE: Final = "meanwhile the primary answers calls with max_staleness"


async def check_replica(url: str) -> Finding:
    """Check the standby."""
    try:
        async with await connect(url) as connection:
            row = await (await connection.execute(_SQL["staleness"])).fetchone()
    except psycopg.Error as error:
        return warn(
            _ABOUT, f"STATESVC_REPLICA_URL does not answer ({type(error).__name__}); {_MEANWHILE}"
        )
    seconds = None if row is None else row[0]
    if seconds is None:
        return warn(
            _ABOUT,
            f"STATESVC_REPLICA_URL leads to no standby, or to one that has replayed nothing yet; {_MEANWHILE}",
        )
    if seconds > STALE_SECONDS:
        return warn(
            _ABOUT,
            f"the standby is {seconds:.0f} s behind: is it cut off, or does a long query hold up what it replays?",
        )
    return ok(_ABOUT, f"the standby is at most {seconds:.1f} s behind")
