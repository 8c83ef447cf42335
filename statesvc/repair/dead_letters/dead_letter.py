"""A dead letter, its filter, the ways to replay each kind, and the obstacles. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, assert_never
from uuid import UUID

from pydantic import AwareDatetime, Field

from events.errors import Cause
from statesvc.http.closed_model import ClosedModel

DeadLetterKind = Literal["message", "code", "notification"]
Resolution = Literal["replayed", "discarded"]
# A worker in another language may bury with a word of its own.
CauseWord = Cause | str


class Way(StrEnum):
    PUT_BACK = "put_back"
    """The message goes into the inbox again, under its old id."""
    SEND_AGAIN = "send_again"
    """The notification goes into the outbox again, under its old webhook id."""
    READ_AGAIN = "read_again"
    """The message was applied except for some members: it is read again, and these are appended."""
    READ_CODE = "read_code"
    """All events with the code are read again and corrected."""


IN_WORDS: Final[Mapping[Way, str]] = {
    Way.PUT_BACK: "back into the inbox",
    Way.SEND_AGAIN: "back into the outbox",
    Way.READ_AGAIN: "message read again",
    Way.READ_CODE: "events with the code read again",
}


def way_of(kind: DeadLetterKind, cause: str) -> Way:
    """Return the way to replay a dead letter.

    `way` in dead_letters.sql decides the same for the queries.
    """
    match kind:
        case "message":
            return Way.READ_AGAIN if cause == Cause.REJECTED_MEMBER else Way.PUT_BACK
        case "code":
            return Way.READ_CODE
        case "notification":
            return Way.SEND_AGAIN
        case _:
            assert_never(kind)


class Obstacle(StrEnum):
    """Reason why a dead letter cannot be replayed.

    Those of `statesvc.replay_obstacle`, and those that the database does not know.
    """

    REPLAYED = "replayed"
    DISCARDED = "discarded"
    WAITING = "waiting"
    SETTLED = "settled"
    ERASED = "erased"
    BODY_GONE = "body_gone"
    HELD = "held"
    UNKNOWN_CARRIER = "unknown_carrier"
    NO_MAPPING = "no_mapping"
    STILL_UNKNOWN = "still_unknown"
    STILL_REJECTED = "still_rejected"
    UNREADABLE = "unreadable"
    NOTIFICATION_GONE = "notification_gone"
    SUBSCRIPTION_GONE = "subscription_gone"
    SUBSCRIPTION_DISABLED = "subscription_disabled"


SENTENCES: Final[Mapping[Obstacle, str]] = {
    Obstacle.REPLAYED: "it was replayed already",
    Obstacle.DISCARDED: "it was discarded",
    Obstacle.WAITING: "it waits in its queue already",
    Obstacle.SETTLED: "its message has taken effect already",
    Obstacle.ERASED: "its key was erased, so nobody can read the message again",
    Obstacle.BODY_GONE: "its message is stored no longer",
    Obstacle.HELD: "its carrier is on hold: release it first (statesvc rollout release)",
    Obstacle.UNKNOWN_CARRIER: "this release knows no such carrier",
    Obstacle.NO_MAPPING: (
        "neither the carrier's normalizer nor a mapping knows the code: map it first (statesvc"
        " carriers map)"
    ),
    Obstacle.STILL_UNKNOWN: "some of its events cannot be read by the mapping, so it stays open",
    Obstacle.STILL_REJECTED: (
        "members of the message are still rejected; what can be read now was appended"
    ),
    Obstacle.UNREADABLE: (
        "its message cannot be read again: it was erased, is stored no longer, or no normalizer"
        " reads it"
    ),
    Obstacle.NOTIFICATION_GONE: "the notification is not there any more",
    Obstacle.SUBSCRIPTION_GONE: "the subscription was deleted",
    Obstacle.SUBSCRIPTION_DISABLED: "the subscription is disabled: enable it first",
}


class RelatedDeadLetter(ClosedModel):
    """Another dead letter of the same message or notification: it was replayed, and buried
    again.
    """

    dead_letter_id: int
    created_at: AwareDatetime
    cause: CauseWord
    detail: str
    attempts: int
    resolved_at: AwareDatetime | None
    resolution: Resolution | None
    resolved_by: str | None
    why: str | None
    run_id: Annotated[
        UUID | None,
        Field(description="The run that settled it, as the log's operator action names it."),
    ]


class DeadLetter(RelatedDeadLetter):
    """A problem that waits for a human or was settled. Holds no part of the message."""

    kind: DeadLetterKind
    carrier_id: str
    message_id: Annotated[UUID | None, Field(description="Of a code: the first message with it.")]
    received_at: AwareDatetime | None
    raw_type: str | None
    raw_code: str | None
    webhook_id: str | None
    worker: str | None
    normalizer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Filter of dead letters; None: any.

    `is_open`: still waiting for a human. `since`, `until`: when they were buried.
    """

    kind: DeadLetterKind | None = None
    carrier_id: str | None = None
    cause: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    is_open: bool | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "ids": None,
            "kind": self.kind,
            "carrier_id": self.carrier_id,
            "cause": self.cause,
            "since": self.since,
            "until": self.until,
            "open": self.is_open,
        }

    @property
    def stated(self) -> dict[str, str]:
        """The filter's values for the log."""
        stated = {"kind": self.kind, "carrier": self.carrier_id, "cause": self.cause}
        times = {
            name: value.isoformat() if value else None
            for name, value in (("since", self.since), ("until", self.until))
        }
        return {name: value for name, value in {**stated, **times}.items() if value is not None}
