"""The database's clock against this machine's: a large difference means that one is wrong."""

from datetime import UTC, datetime
from typing import Final

# Beyond this no round trip, no lost second and no slow synchronisation explains the difference.
FAR_SECONDS: Final = 3600.0
_UNITS: Final = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))


def clock_fault(
    database: datetime, machine: float, *, seconds_max: float = FAR_SECONDS
) -> str | None:
    """Return the fault as a sentence without its end; None: they agree.

    `machine`: seconds since 1970.
    """
    ahead = database.timestamp() - machine
    if abs(ahead) <= seconds_max:
        return None
    unit, seconds = next(
        ((unit, seconds) for unit, seconds in _UNITS if abs(ahead) >= 2 * seconds), ("seconds", 1.0)
    )
    side = "ahead of" if ahead > 0 else "behind"
    return (
        f"the database's clock says {database.astimezone(UTC):%Y-%m-%d %H:%M} UTC,"
        f" {abs(ahead) / seconds:,.0f} {unit} {side} this machine's: find out which one is wrong"
        " and set it right"
    )
