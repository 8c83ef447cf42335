"""Check of the clock behind the time of sealing: the database's is compared with this
machine's, and with the log.

Entries keep their time of sealing for ever, and `as_of` reads by it: a clock that is ahead for
seconds can make `as_of` answer 404 for an hour.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.sealer.seal import RefusalError

CLOCK_SECONDS_MAX: Final = 5.0

_SQL = queries("statesvc.sealer", "clock_check")


class ClockError(RefusalError):
    """Two clocks contradict each other, or a clock contradicts the log."""


@dataclass(slots=True)
class ClockCheck:
    """`now`: this machine's wall clock.

    `database_ahead_seconds`: as it was found last; negative where the database's clock is behind.
    """

    seconds_max: float = CLOCK_SECONDS_MAX
    now: Callable[[], float] = field(default=time.time)
    database_ahead_seconds: float = 0.0

    async def check(self, connection: AsyncConnection[Any]) -> None:
        # on both sides of the query: a slow answer must not look like a wrong clock
        before = self.now()
        row = await (await connection.execute(_SQL["clocks"])).fetchone()
        after = self.now()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        database, sealed_at, recorded_at = row
        # the answer was made at some time in between
        self.database_ahead_seconds = min(0.0, database.timestamp() - before) + max(
            0.0, database.timestamp() - after
        )
        if abs(self.database_ahead_seconds) > self.seconds_max:
            side = "ahead of" if self.database_ahead_seconds > 0 else "behind"
            raise ClockError(
                f"the database's clock is {abs(self.database_ahead_seconds):,.0f} s {side} this"
                f" machine's: nothing is sealed until they agree within {self.seconds_max:g} s."
                " Find out which one is wrong (chronyc tracking on both) and set it right"
            )
        self._require_past("the newest sealed entry was sealed", sealed_at, database)
        self._require_past("an entry that waits to be sealed was recorded", recorded_at, database)

    def _require_past(self, what: str, written: datetime | None, database: datetime) -> None:
        ahead = 0.0 if written is None else (written - database).total_seconds()
        if written is not None and ahead > self.seconds_max:
            raise ClockError(
                f"{what} at {written.isoformat()}, which has not come yet: the database's clock was"
                " ahead then, or is behind now. Sealing goes on by itself when that time has come;"
                " where it is too far, raise STATESVC_SEALER_CLOCK_SECONDS_MAX above it"
            )
