"""The outcome of an attempt at any kind of target, and the next step. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from statesvc.delivery.retry_schedule import RETRY_AFTER_SECONDS_MAX, next_delay_seconds

CONNECT_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 15.0
# Bounds of every attempt, for any target.
RESPONSE_BYTES_MAX: Final = 20_000


class AttemptOutcome(StrEnum):
    """The words that attempts are recorded with. Only ever grows: old entries keep theirs."""

    DELIVERED = "delivered"
    """The subscriber answered 2xx; a broker confirmed that it stored it."""
    REFUSED = "refused"
    """Any other answer, redirects included: they are never followed."""
    GONE = "gone"
    """410: the subscriber wants no more; its subscription is disabled."""
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    """No connection: network, TLS, or the peer hung up.

    Before the three words below were there: any reason.
    """
    CONNECTION_REFUSED = "connection_refused"
    """The machine answers, but the port is closed."""
    NAME_NOT_FOUND = "name_not_found"
    CERTIFICATE_NOT_TRUSTED = "certificate_not_trusted"
    """Its certificate is expired, for another name, or of an authority that is not known here."""
    ADDRESS_REFUSED = "address_refused"
    """Every address of the host is in a forbidden network, so the attempt sent no request."""
    UNSIGNED = "unsigned"
    """Our master keys do not open the subscription's secrets, so the attempt sent no request."""
    UNROUTABLE = "unroutable"
    """A broker answered that it has nowhere to put it: no stream, exchange, queue or topic takes
    it.
    """
    NOT_STORED = "not_stored"
    """A broker answered that it did not store it: it is full, or too few of its replicas are up."""
    DENIED = "denied"
    """A broker refused the login, or this login the right to publish there."""
    CLIENT_MISSING = "client_missing"
    """The notifier lacks the client library of this broker, so the attempt sent no message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer of a receiver.

    `response` is the beginning of the body, at most 20 kB; `headers` are those that hold
    no secret, at most 4 kB.
    """

    outcome: AttemptOutcome
    duration_seconds: float
    status_code: int | None = None
    retry_after_seconds: float | None = None
    response: bytes = field(default=b"", repr=False)
    detail: str = ""
    """Answer of a broker: the message's place, or the reason of a failure, without its content."""
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)


def outcome_of(status_code: int) -> AttemptOutcome:
    if 200 <= status_code < 300:
        return AttemptOutcome.DELIVERED
    return AttemptOutcome.GONE if status_code == 410 else AttemptOutcome.REFUSED


class EndOutcome(StrEnum):
    """Outcome of a notification. The words of the log: they only ever grow."""

    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    """It is a dead letter, which a human may replay."""
    CANCELLED = "cancelled"
    """Its subscription was deleted after tries; what was never tried is covered by the entry of the
    deletion. Without a try: older than
    the subscription's `max_age_seconds`.
    """
    LATE = "late"
    """Not an end, but tries that were recorded after it, because their notifier had lost its
    lease.
    """


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Try once more, later. `disable`: not before the subscription is enabled again."""

    delay_seconds: float
    disable: bool = False


def next_step(
    outcome: AttemptOutcome, *, attempts: int, retry_after_seconds: float | None, jitter: float
) -> EndOutcome | RetryLater:
    """Return the next step after `attempts` attempts, the last with `outcome`. `jitter` in 0..1."""
    if outcome is AttemptOutcome.DELIVERED:
        return EndOutcome.DELIVERED
    if outcome is AttemptOutcome.GONE:
        delay = next_delay_seconds(attempts, retry_after_seconds=None, jitter=jitter)
        return RetryLater(RETRY_AFTER_SECONDS_MAX if delay is None else delay, disable=True)
    delay = next_delay_seconds(attempts, retry_after_seconds=retry_after_seconds, jitter=jitter)
    return EndOutcome.GIVEN_UP if delay is None else RetryLater(delay)


# Outcomes that need other words than their names.
_WORDS: Final[Mapping[str, str]] = {
    AttemptOutcome.REFUSED: "answered",
    AttemptOutcome.GONE: "wants no more:",
    AttemptOutcome.UNREACHABLE: "no connection",
    AttemptOutcome.ADDRESS_REFUSED: "address not allowed",
    AttemptOutcome.UNSIGNED: "no key to sign with",
    AttemptOutcome.UNROUTABLE: "broker has nowhere to put it",
    AttemptOutcome.NOT_STORED: "broker did not store it",
    AttemptOutcome.DENIED: "broker refused the login",
    AttemptOutcome.CLIENT_MISSING: "client library missing",
}


def outcome_words(outcome: str | None, status_code: int | None = None) -> str:
    """Describe the end of a try: `answered 503`, `connection refused`."""
    words = _WORDS.get(outcome or "", (outcome or "").replace("_", " "))
    return f"{words} {status_code}" if status_code else words
