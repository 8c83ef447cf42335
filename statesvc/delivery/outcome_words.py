"""How a try at a notification ended, in words."""

from collections.abc import Mapping
from typing import Final

from statesvc.delivery.outcome import AttemptOutcome

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
