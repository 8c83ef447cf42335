"""Bodies sent to subscribers: for each attempt the body that fits its commitment, or the reason."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from events.entry.kinds import FIRST_EPOCH
from statesvc.addons.evidence.bundle import ERASED, OPENED, UNAVAILABLE, WITHHELD
from statesvc.delivery.attempt_part import SentBody, opened_part, parts_by_number
from statesvc.delivery.full_payload import ShipmentPast, read_past
from statesvc.delivery.notification import Gap, Notification, body_of, stated_observation
from statesvc.shipments.audit_trail import read_receivers
from statesvc.shipments.notification_trail import (
    Document,
    LoggedNotification,
    LoggedTry,
    NotificationKey,
    notifications_of,
    type_of,
)
from statesvc.shipments.personal import Opener


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reader of a shipment.

    `opener`: opens its events' parts, for a body that has to be made again.
    """

    opener: Opener
    personal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAttempt:
    """An attempt in the log. `sent` None: its part does not open, for the reason `state`."""

    number: int
    committed: str
    sent: SentBody | None = field(repr=False)
    state: str

    @classmethod
    def of(cls, key: NotificationKey, one: LoggedTry) -> "LoggedAttempt":
        """Make it from the entry that lists it; without a part, the shipment was erased before."""
        salted_part, state = one.entry
        number = one.document["number"]
        found = None
        if salted_part is not None:
            found = parts_by_number(
                opened_part(salted_part), key.sequence if one.covered else None
            ).get(number)
        return cls(
            number=number,
            committed=one.document["body_commitment"],
            sent=None if found is None else SentBody.of(found),
            state=UNAVAILABLE if state == UNAVAILABLE else ERASED if found is None else OPENED,
        )

    def fits(self, body: str) -> bool:
        return (
            self.sent is not None
            and hashlib.sha256(self.sent.salt + body.encode()).hexdigest() == self.committed
        )


async def read_sent(
    connection: AsyncConnection[Any],
    reader: Reader,
    entries: Sequence[tuple[Document, tuple[bytes | None, str]]],
) -> list[dict[str, Any]]:
    """Return the sent bodies by notification, each once. `entries`: with salted parts.

    All of it is from the entries, except for the receivers' names.
    """
    events = {
        document["version"]: document for document, _ in entries if document["entry"] == "event"
    }
    observed = {
        document["details"].get("sequence"): document
        for document, _ in entries
        if document["entry"] == "observation"
    }
    of_kind = {
        kind: [each for each in entries if each[0]["entry"] == kind]
        for kind in ("fanout", "attempt")
    }
    found = notifications_of(of_kind["fanout"], of_kind["attempt"])
    tried = {
        key: [LoggedAttempt.of(key, each) for each in one.tries]
        for key, one in found.items()
        if one.tries
    }
    notified = {
        key: _notifications(found[key], key.sequence, events, observed.get(key.sequence))
        for key in tried
    }
    shipment_id = reader.opener.shipment_id
    unstored = [
        key.sequence
        for key, notifications in notified.items()
        if key.sequence > 0 and _needs_history(notifications, tried[key])
    ]
    past = await read_past(
        connection, [(shipment_id, sequence) for sequence in unstored], thin=frozenset()
    )
    receivers = await read_receivers(connection, (key.subscription_id for key in notified))
    return [
        {
            "webhook_id": notification.webhook_id,
            "subscription_id": key.subscription_id,
            "receiver": receivers[key.subscription_id].host
            if key.subscription_id in receivers
            else "",
            "type": notification.type,
            "change": {
                "from": notification.from_status,
                "to": notification.to_status,
                "occurred_at": notification.occurred_at.isoformat(),
                "sequence": notification.sequence,
            },
            "attempts": numbers,
            "body": body,
            "body_state": state,
        }
        for key, (notification, *others) in notified.items()
        for (body, state), numbers in _bodies(
            reader, [notification, *others], tried[key], past.get((shipment_id, key.sequence))
        ).items()
    ]


def _notifications(
    one: LoggedNotification,
    sequence: int,
    events: Mapping[int, Document],
    observation: Document | None,
) -> list[Notification]:
    """Return it as it may have been sent: its body follows from its entries and its event, but for
    the epoch of the log at that time.
    """
    event = events[sequence if observation is None else observation["version"]]
    named = observation or event
    notification = Notification(
        webhook_id=one.webhook_id,
        type=type_of(one),
        created_at=datetime.fromisoformat(named["recorded_at"]),
        occurred_at=datetime.fromisoformat(
            event["occurred_at"] if observation is None else observation["since"]
        ),
        carrier_id=event["carrier_id"],
        tracking_number=event["tracking_number"],
        from_status=one.from_status,
        to_status=one.to_status,
        sequence=sequence,
        gap=None if one.gap is None else Gap(**one.gap),
        observed=None if observation is None else stated_observation(observation),
    )
    epochs = range(min(one.epochs), max(one.epochs) + 1)
    return [
        replace(notification, epoch=None if epoch == FIRST_EPOCH else epoch) for epoch in epochs
    ]


def _needs_history(notifications: Sequence[Notification], tried: Sequence[LoggedAttempt]) -> bool:
    """Return whether its body is neither thin nor stored, so that it has to be made again."""
    # most bodies are thin and follow from the entries: the history is read for the others alone
    thin = [body_of(each).decode() for each in notifications]
    return any(
        one.sent is not None and one.sent.stored is None and not any(map(one.fits, thin))
        for one in tried
    )


def _bodies(
    reader: Reader,
    notifications: Sequence[Notification],
    tried: Sequence[LoggedAttempt],
    past: ShipmentPast | None,
) -> dict[tuple[str | None, str], list[int]]:
    """Return which attempts were sent which body, and whether it is shown."""
    found: dict[tuple[str | None, str], list[int]] = {}
    for one in tried:
        found.setdefault(
            _shown(reader, one, _candidates(reader, notifications, one, past)), []
        ).append(one.number)
    return found


def _shown(
    reader: Reader, tried: LoggedAttempt, candidates: Iterator[tuple[str, bool]]
) -> tuple[str | None, str]:
    if tried.sent is None:
        return None, tried.state
    for body, is_thin in candidates:
        if tried.fits(body):
            return (body, OPENED) if is_thin or reader.personal else (None, WITHHELD)
    # never a body that only resembles the one that was sent
    return None, UNAVAILABLE


def _candidates(
    reader: Reader,
    notifications: Sequence[Notification],
    tried: LoggedAttempt,
    past: ShipmentPast | None,
) -> Iterator[tuple[str, bool]]:
    """Yield bodies that may have been sent, and whether each is the change alone."""
    yield from ((body_of(each).decode(), True) for each in notifications)
    if tried.sent is not None and tried.sent.stored is not None:
        yield tried.sent.stored, False
    elif past is not None:
        # a subscription may have been sent personal fields or none: the commitment tells
        for opener in (reader.opener, None):
            full = past.full(reader.opener.shipment_id, erased=False, opener=opener)
            yield from (
                (body_of(replace(each, full=full)).decode(), False) for each in notifications
            )
