"""Why a dead letter cannot be replayed: the words of `statesvc.replay_obstacle` in the database, and ours where only we can tell."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Obstacle(StrEnum):
    """Stable words, for programs."""

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
    Obstacle.BODY_GONE: "its message is kept no longer",
    Obstacle.HELD: "its carrier is on hold: release it first (statesvc rollout release)",
    Obstacle.UNKNOWN_CARRIER: "this release knows no such carrier",
    Obstacle.NO_MAPPING: "neither the carrier's normalizer nor a mapping knows the code: map it first (statesvc carriers map)",
    Obstacle.STILL_UNKNOWN: "some of its events cannot be read by the mapping, so it stays open",
    Obstacle.STILL_REJECTED: "members of the message are still rejected; what can be read now was appended",
    Obstacle.UNREADABLE: "its message cannot be read again: it was erased, is kept no longer, or no normalizer reads it",
    Obstacle.NOTIFICATION_GONE: "what it would tell is not there any more",
    Obstacle.SUBSCRIPTION_GONE: "the subscription was deleted",
    Obstacle.SUBSCRIPTION_DISABLED: "the subscription is disabled: enable it first",
}
"""For humans."""
