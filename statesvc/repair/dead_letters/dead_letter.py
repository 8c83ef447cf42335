"""A dead letter, a filter over them, and what replaying each kind means. Values only."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, assert_never
from uuid import UUID

from events.errors import Cause

DeadLetterKind = Literal["message", "code", "notification"]
Resolution = Literal["replayed", "discarded"]


class Way(StrEnum):
    """What replaying a letter means."""

    PUT_BACK = "put_back"
    """The message goes into the inbox again, under its old id."""
    SEND_AGAIN = "send_again"
    """The notification goes into the outbox again, under its old webhook id."""
    READ_AGAIN = "read_again"
    """The message was applied but for some members: it is read again, and what it lacks is appended."""
    READ_CODE = "read_code"
    """All events with the code are read again and corrected."""


IN_WORDS = {
    Way.PUT_BACK: "back into the inbox",
    Way.SEND_AGAIN: "back into the outbox",
    Way.READ_AGAIN: "message read again",
    Way.READ_CODE: "events with the code read again",
}


def way_of(kind: DeadLetterKind, cause: str) -> Way:
    """How a letter is replayed. `replays` in replay.sql says the same for the statements."""
    match kind:
        case "message":
            return Way.READ_AGAIN if cause == Cause.REJECTED_MEMBER else Way.PUT_BACK
        case "code":
            return Way.READ_CODE
        case "notification":
            return Way.SEND_AGAIN
        case _:
            assert_never(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One thing that waits for a human, or that a human settled. `run_id`: the run that settled it, as the log names it."""

    dead_letter_id: int
    kind: DeadLetterKind
    cause: str
    carrier_id: str
    created_at: datetime
    message_id: UUID | None
    received_at: datetime | None
    raw_type: str | None
    raw_code: str | None
    webhook_id: str | None
    detail: str
    attempts: int
    worker: str | None
    normalizer: str | None
    resolved_at: datetime | None
    resolution: Resolution | None
    resolved_by: str | None
    why: str | None
    run_id: UUID | None

    @property
    def way(self) -> Way:
        """How it is replayed."""
        return way_of(self.kind, self.cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which dead letters are meant; None: any. `is_open`: still waiting for a human. `since`, `until`: when they were buried."""

    kind: DeadLetterKind | None = None
    carrier_id: str | None = None
    cause: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    is_open: bool | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """For the statements."""
        return {
            "kind": self.kind,
            "carrier_id": self.carrier_id,
            "cause": self.cause,
            "since": self.since,
            "until": self.until,
            "open": self.is_open,
        }

    @property
    def stated(self) -> dict[str, str]:
        """What is stated, for the log."""
        stated = {"kind": self.kind, "carrier": self.carrier_id, "cause": self.cause}
        times = {name: value.isoformat() if value else None for name, value in (("since", self.since), ("until", self.until))}
        return {name: value for name, value in {**stated, **times}.items() if value is not None}
