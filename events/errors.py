"""Errors between a message and its events, as values with a closed list of causes."""

from enum import StrEnum


class Cause(StrEnum):
    """Cause for which a message waits for a human.

    Stable words: dead letters are grouped and replayed by them.
    """

    UNREADABLE = "unreadable"
    """Not JSON, not XML, truncated, wrongly encoded."""
    REFUSED_XML = "refused_xml"
    """Has a DOCTYPE, entities or XInclude: never parsed further."""
    TOO_COMPLEX = "too_complex"
    """Beyond the limits on depth, nodes, attributes or number length."""
    UNKNOWN_FORMAT = "unknown_format"
    """Parses, but is not in any of the carrier's formats."""
    NO_TRACKING_NUMBER = "no_tracking_number"
    """Events without a tracking number in any field."""
    INVALID_EVENT = "invalid_event"
    """A canonical event that breaks the schema."""
    REJECTED_MEMBER = "rejected_member"
    """The message was applied, but some of its members are no events."""
    UNKNOWN_CODE = "unknown_code"
    """A carrier code without a mapping; one dead letter per (carrier, type, code)."""
    CONTRADICTS_TEXT = "contradicts_text"
    """A code that contradicts the status of its text.

    One dead letter per (carrier, type, code, status of the text).
    """
    WORKER_DIED = "worker_died"
    """Every attempt ended without a verdict."""
    BODY_MISSING = "body_missing"
    """The message waits, but its body is neither among the hot ones nor among the archived ones."""
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    """Transient failures beyond their budget."""
    NORMALIZER_FAILED = "normalizer_failed"
    """The normalizer raised something that it does not declare: a defect of ours."""
    DELIVERY_EXHAUSTED = "delivery_exhausted"
    """A notification that its subscriber never accepted."""
    UNMAPPED_TASK = "unmapped_task"
    """A message of another broker for which the shovel's mapping has no rule."""
    REUSED_TASK_ID = "reused_task_id"
    """A message of another broker that reuses an earlier id with other content."""
    RETURNING = "returning"
    """Taken out of the inbox, to go back to the broker that it came from."""


class UnreadableMessageError(ValueError):
    """A message that no retry can make readable.

    `detail` names the place and the rule, never a value of the message.
    """

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause.value}: {detail}")
        self.cause = cause
        self.detail = detail


class CarrierPackageError(Exception):
    """Another installed package brings a carrier, or a version, that cannot be used."""
