"""Signals that an attempt gives about its receiver."""

from enum import Enum, auto
from typing import assert_never

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.retry_schedule import RETRY_AFTER_SECONDS_MAX, RETRY_AFTER_SECONDS_MIN

_TOO_MANY = frozenset({408, 429})
_MAY_ASK_TO_WAIT = frozenset({429, 503})


class Signal(Enum):
    OK = auto()
    """The receiver took the notification: its latency counts."""
    OVERLOADED = auto()
    """It is too busy or broken: fewer at a time."""
    REFUSED = auto()
    """The receiver rejected this notification, or was not asked: no sign of its capacity."""


def signal_of(outcome: AttemptOutcome, status_code: int | None) -> Signal:
    match outcome:
        case AttemptOutcome.DELIVERED:
            return Signal.OK
        case (
            AttemptOutcome.TIMED_OUT
            | AttemptOutcome.UNREACHABLE
            | AttemptOutcome.CONNECTION_REFUSED
            | AttemptOutcome.NAME_NOT_FOUND
            | AttemptOutcome.CERTIFICATE_NOT_TRUSTED
            | AttemptOutcome.NOT_STORED
        ):
            return Signal.OVERLOADED
        case AttemptOutcome.REFUSED:
            # another 4xx is about this notification: fewer at a time would not help it
            busy = status_code is not None and (status_code >= 500 or status_code in _TOO_MANY)
            return Signal.OVERLOADED if busy else Signal.REFUSED
        case (
            AttemptOutcome.GONE
            | AttemptOutcome.ADDRESS_REFUSED
            | AttemptOutcome.UNSIGNED
            | AttemptOutcome.UNROUTABLE
            | AttemptOutcome.DENIED
            | AttemptOutcome.CLIENT_MISSING
        ):
            return Signal.REFUSED
        case _:
            assert_never(outcome)


def pause_asked_for(status_code: int | None, retry_after_seconds: float | None) -> float | None:
    """Return the seconds for which the receiver wants no call at all: only these answers speak for
    the receiver, not for one request.
    """
    if retry_after_seconds is None or status_code not in _MAY_ASK_TO_WAIT:
        return None
    return min(max(retry_after_seconds, RETRY_AFTER_SECONDS_MIN), RETRY_AFTER_SECONDS_MAX)
