"""What subscribers were sent: for each attempt the body that its own commitment fits, or why it is not shown."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.delivery.attempt_entry import SentBody, sent_body_of
from statesvc.delivery.full_payload import Past, read_past
from statesvc.delivery.notification import Notification, body_of, notification_of
from statesvc.evidence.bundle import ERASED, OPENED, UNAVAILABLE, WITHHELD
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.evidence", "evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads, of which shipment. `opener`: opens its events' parts, for a body that has to be made again."""

    opener: Opener
    personal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAttempt:
    """One attempt as the log has it. `sent` None: its part does not open any more, for the reason `state`."""

    number: int
    committed: str
    sent: SentBody | None = field(repr=False)
    state: str

    @classmethod
    def of(cls, document: Mapping[str, Any], part: bytes | None, state: str) -> "LoggedAttempt":
        """From its entry; one without a part was made after the shipment was erased."""
        sent = None if part is None else sent_body_of(part)
        return cls(
            number=document["number"],
            committed=document["body_commitment"],
            sent=sent,
            state=UNAVAILABLE if state == UNAVAILABLE else ERASED if sent is None else OPENED,
        )

    def fits(self, body: str) -> bool:
        """Whether this is what was sent."""
        return self.sent is not None and hashlib.sha256(self.sent.salt + body.encode()).hexdigest() == self.committed


async def read_sent(
    connection: AsyncConnection[Any], reader: Reader, attempts: Sequence[tuple[Mapping[str, Any], tuple[bytes | None, str]]]
) -> list[dict[str, Any]]:
    """By notification, and once for each body where its attempts were sent several. `attempts`: documents, with their salted parts."""
    tried: dict[str, list[LoggedAttempt]] = {}
    for document, (part, state) in attempts:
        tried.setdefault(document["webhook_id"], []).append(LoggedAttempt.of(document, part, state))
    shipment_id = reader.opener.shipment_id
    cursor = await connection.execute(_SQL["notifications"], {"shipment_id": shipment_id}, binary=True)
    rows = [(notification_of(sequence, row), subscription_id, url) for sequence, *row, subscription_id, url in await cursor.fetchall()]
    notified = [one for one in rows if one[0].webhook_id in tried]
    unstored = [notification for notification, *_ in notified if _needs_history(notification, tried[notification.webhook_id])]
    past = await read_past(connection, [(shipment_id, notification.sequence) for notification in unstored], thin=frozenset())
    return [
        {
            "webhook_id": notification.webhook_id,
            "subscription_id": str(subscription_id),
            "receiver": urlsplit(url).hostname or "",
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
        for notification, subscription_id, url in notified
        for (body, state), numbers in _bodies(
            reader, notification, tried[notification.webhook_id], past.get((shipment_id, notification.sequence))
        ).items()
    ]


def _needs_history(notification: Notification, tried: Sequence[LoggedAttempt]) -> bool:
    """Whether its body is neither thin nor stored (as older attempts' bodies are not), so that it has to be made again."""
    thin = body_of(notification).decode()
    return any(one.sent is not None and one.sent.stored is None and not one.fits(thin) for one in tried)


def _bodies(
    reader: Reader, notification: Notification, tried: Sequence[LoggedAttempt], past: Past | None
) -> dict[tuple[str | None, str], list[int]]:
    """Which attempts were sent which body, and whether it is shown."""
    found: dict[tuple[str | None, str], list[int]] = {}
    for one in tried:
        found.setdefault(_shown(reader, one, _candidates(reader, notification, one, past)), []).append(one.number)
    return found


def _shown(reader: Reader, tried: LoggedAttempt, candidates: Iterator[tuple[str, bool]]) -> tuple[str | None, str]:
    if tried.sent is None:
        return None, tried.state
    for body, is_thin in candidates:
        if tried.fits(body):
            return (body, OPENED) if is_thin or reader.personal else (None, WITHHELD)
    return None, UNAVAILABLE


def _candidates(reader: Reader, notification: Notification, tried: LoggedAttempt, past: Past | None) -> Iterator[tuple[str, bool]]:
    """What may have been sent, and whether that is the change alone."""
    yield body_of(notification).decode(), True
    if tried.sent is not None and tried.sent.stored is not None:
        yield tried.sent.stored, False
    elif past is not None:
        for opener in (reader.opener, None):
            full = past.full(reader.opener.shipment_id, erased=False, opener=opener)
            yield body_of(replace(notification, full=full)).decode(), False
