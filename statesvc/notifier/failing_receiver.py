"""When a receiver that only fails is warned of, and when it is told no more. Pure: the time is an argument.

Silence is no failure: both judgements want failures that lie apart, so that a short outage before a quiet week disables nobody.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from statesvc.delivery.outcome import AttemptOutcome

WARN_AFTER: Final = timedelta(hours=24)
DISABLE_AFTER: Final = timedelta(days=5)
FAILURES_MIN: Final = 20
"""For disabling."""
SPREAD_MIN: Final = timedelta(hours=12)
"""Between the first failure and the last."""


class Judgement(Enum):
    """What follows."""

    BEAR = "bear"
    WARN = "warn"
    DISABLE = "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """So many attempts failed since the last one that was delivered, the first at `since`, the last at `last_at`."""

    since: datetime
    last_at: datetime
    failures: int
    warned_at: datetime | None


def judge(failing: Failing, *, now: datetime) -> Judgement:
    """What follows for one receiver."""
    lasts = now - failing.since
    if failing.last_at - failing.since < SPREAD_MIN or lasts < WARN_AFTER:
        return Judgement.BEAR
    if lasts >= DISABLE_AFTER and failing.failures >= FAILURES_MIN:
        return Judgement.DISABLE
    return Judgement.BEAR if failing.warned_at else Judgement.WARN


def blames_receiver(outcome: AttemptOutcome) -> bool:
    """Whether an attempt that ended like this failed through its receiver; one that we could not sign or send at all did not."""
    return outcome in _BLAMED


_BLAMED: Final = frozenset(
    {
        *(
            AttemptOutcome.REFUSED,
            AttemptOutcome.GONE,
            AttemptOutcome.TIMED_OUT,
            AttemptOutcome.UNREACHABLE,
            AttemptOutcome.ADDRESS_REFUSED,
        ),
        *(AttemptOutcome.UNROUTABLE, AttemptOutcome.NOT_STORED, AttemptOutcome.DENIED),
    }
)
