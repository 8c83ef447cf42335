"""The notifications of a shipment as entries of the log say them: fan-outs open them,
attempt entries end them.

Pure.

A notification may be opened and ended several times: it was replayed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from events.entry.kinds import FIRST_EPOCH
from events.identity.ids import webhook_id
from projections.notification_type import type_of_change

COALESCED: Final = "coalesced"
LATE: Final = "late"

Document = Mapping[str, Any]


class NotificationKey(NamedTuple):
    sequence: int
    subscription_id: str


@dataclass(frozen=True, slots=True)
class LoggedTry:
    """A try, and its entry.

    `covered`: at a notification that ended with another notification's entry.
    """

    document: Document
    entry: Any
    covered: bool


@dataclass(slots=True)
class LoggedNotification:
    """A notification as the log has it.

    `event`: the leaf hash of the event that names the change.
    """

    event: str
    from_status: str
    to_status: str
    webhook_id: str
    kind: str | None = None
    """Its type where it is of an observation; `event` is the leaf hash of that then."""
    fanouts: list[Any] = field(default_factory=list)
    tries: list[LoggedTry] = field(default_factory=list)
    outcome: str | None = None
    covered_by: int | None = None
    gap: Mapping[str, int] | None = None
    epochs: set[int] = field(default_factory=set)
    """Epochs of the log in which its entries were recorded: what waits when the log forks is
    sent with the new one.
    """


def notifications_of(
    fanouts: Iterable[tuple[Document, Any]], ends: Iterable[tuple[Document, Any]]
) -> dict[NotificationKey, LoggedNotification]:
    """Return the notifications by change and subscription.

    Both arguments are pairs of document and entry, in the order of the log.
    """
    found: dict[NotificationKey, LoggedNotification] = {}
    for document, entry in fanouts:
        for subscription_id in document["subscriptions"]:
            key = NotificationKey(document["sequence"], subscription_id)
            one = found.get(key)
            if one is None:
                leaf_hash = bytes.fromhex(document["event"])
                one = found[key] = LoggedNotification(
                    document["event"],
                    document["from"],
                    document["to"],
                    webhook_id(UUID(subscription_id), leaf_hash),
                    document.get("type"),
                )
            one.fanouts.append((document, entry))
            one.epochs.add(document.get("epoch", FIRST_EPOCH))
    for document, entry in ends:
        _end(
            found.get(NotificationKey(document["sequence"], document["subscription_id"])),
            document,
            entry,
        )
        for covered in document.get("covers", ()):
            ended = found.get(NotificationKey(covered["sequence"], document["subscription_id"]))
            if ended is not None:
                ended.outcome, ended.covered_by = COALESCED, document["sequence"]
                # kept where a later end says nothing of it
                ended.gap = covered.get("gap", ended.gap)
                ended.epochs.add(document.get("epoch", FIRST_EPOCH))
                ended.tries += (
                    LoggedTry(each, entry, covered=True) for each in covered.get("tries", ())
                )
    # by sequence, as the changes happened: entries of several notifiers interleave
    return dict(sorted(found.items()))


# the caller's
def _end(one: LoggedNotification | None, document: Document, entry: Any) -> None:  # noqa: ANN401
    if one is None:
        return
    one.tries += (LoggedTry(each, entry, covered=False) for each in document["tries"])
    one.gap = document.get("gap", one.gap)
    one.epochs.add(document.get("epoch", FIRST_EPOCH))
    # the answer of a try came after the end was recorded: it adds the try and changes no outcome
    if document["outcome"] != LATE:
        one.outcome, one.covered_by = document["outcome"], None


def type_of(one: LoggedNotification) -> str:
    return one.kind or type_of_change(one.from_status, one.to_status)
