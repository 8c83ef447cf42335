"""What came of one try, and what follows from it. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from statesvc.delivery.retry_schedule import RETRY_AFTER_SECONDS_MAX, next_delay_seconds


class AttemptOutcome(StrEnum):
    """The words that attempts are recorded with. Only ever grows: old entries keep theirs."""

    DELIVERED = "delivered"
    """The subscriber answered 2xx; a broker confirmed that it stored it."""
    REFUSED = "refused"
    """Any other answer. A redirect is one too: it is never followed."""
    GONE = "gone"
    """410: the subscriber wants no more; its subscription is disabled."""
    TIMED_OUT = "timed_out"
    """No answer in time."""
    UNREACHABLE = "unreachable"
    """No connection: name, network, TLS, or the peer hung up."""
    ADDRESS_REFUSED = "address_refused"
    """Every address of the host lies in a network that subscribers may not live in; nothing was sent."""
    UNSIGNED = "unsigned"
    """The subscription's secrets do not open with the master keys that we have; nothing was sent."""
    UNROUTABLE = "unroutable"
    """A broker answered that it has nowhere to put it: no stream, exchange, queue or topic takes it."""
    NOT_STORED = "not_stored"
    """A broker answered that it did not store it: it is full, or too few of its replicas are up."""
    DENIED = "denied"
    """A broker refused the login, or this login the right to publish there."""
    CLIENT_MISSING = "client_missing"
    """The notifier that tried lacks the client library of this kind of broker; nothing was sent."""
    COALESCED = "coalesced"
    """Too much waited: a later notification of the same shipment stands for this one and says so; nothing was sent."""


def outcome_of(status_code: int) -> AttemptOutcome:
    """What a status code of the subscriber means."""
    if 200 <= status_code < 300:
        return AttemptOutcome.DELIVERED
    return AttemptOutcome.GONE if status_code == 410 else AttemptOutcome.REFUSED


@dataclass(frozen=True, slots=True)
class Finish:
    """The subscriber has it, or is told by another."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Once more, later. `disable`: not before somebody enables the subscription again."""

    delay_seconds: float
    disable: bool = False


@dataclass(frozen=True, slots=True)
class GiveUp:
    """That was the last try: it waits for a human now."""


NextStep = Finish | RetryLater | GiveUp


def next_step(outcome: AttemptOutcome, *, attempts: int, retry_after_seconds: float | None, jitter: float) -> NextStep:
    """What follows after `attempts` tries, of which the last ended in `outcome`. `jitter` in 0..1."""
    match outcome:
        case AttemptOutcome.DELIVERED | AttemptOutcome.COALESCED:
            return Finish()
        case AttemptOutcome.GONE:
            delay = next_delay_seconds(attempts, retry_after_seconds=None, jitter=jitter)
            return RetryLater(RETRY_AFTER_SECONDS_MAX if delay is None else delay, disable=True)
        case (
            AttemptOutcome.REFUSED
            | AttemptOutcome.TIMED_OUT
            | AttemptOutcome.UNREACHABLE
            | AttemptOutcome.ADDRESS_REFUSED
            | AttemptOutcome.UNSIGNED
            | AttemptOutcome.UNROUTABLE
            | AttemptOutcome.NOT_STORED
            | AttemptOutcome.DENIED
            | AttemptOutcome.CLIENT_MISSING
        ):
            delay = next_delay_seconds(attempts, retry_after_seconds=retry_after_seconds, jitter=jitter)
            return GiveUp() if delay is None else RetryLater(delay)
        case _:
            assert_never(outcome)
