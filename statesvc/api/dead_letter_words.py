"""What the cause of a dead letter means, in words: `GET /v1/status` and the console say it alike."""

from collections.abc import Mapping
from typing import Final

from events.errors import Cause

_CAUSE_WORDS: Final[Mapping[str, str]] = {
    Cause.UNREADABLE: "body cannot be read",
    Cause.REFUSED_XML: "XML that is never parsed",
    Cause.TOO_COMPLEX: "body is too complex",
    Cause.UNKNOWN_FORMAT: "format is not known",
    Cause.NO_TRACKING_NUMBER: "no tracking number",
    Cause.INVALID_EVENT: "event breaks the schema",
    Cause.REJECTED_MEMBER: "part of a message is no event",
    Cause.UNKNOWN_CODE: "unknown codes",
    Cause.CONTRADICTS_TEXT: "codes whose text says another status",
    Cause.WORKER_DIED: "its worker died at every attempt",
    Cause.BODY_MISSING: "body is missing",
    Cause.ATTEMPTS_EXHAUSTED: "every attempt failed",
    Cause.NORMALIZER_FAILED: "our reader failed",
    Cause.DELIVERY_EXHAUSTED: "receiver gave up",
}


def cause_words(cause: str, detail: str = "") -> str:
    """Say what a cause means."""
    if cause == Cause.UNKNOWN_CODE and detail:
        return f"unknown code {detail}"
    if cause == Cause.CONTRADICTS_TEXT and detail:
        return f"code {detail}"
    return _CAUSE_WORDS.get(cause, cause.replace("_", " "))
