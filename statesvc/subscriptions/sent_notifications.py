"""The notifications of a subscription: each with its end, its tries, and its body as sent.

As far back as the log's months are in the database; with a shipment named, further. A body is shown
only if it fits the commitment of its try: it is made again from its row, or opened where it was
stored. The commitment of an erased shipment cannot be opened.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from events.entry.kinds import FIRST_EPOCH
from statesvc.database.queries import queries
from statesvc.delivery.attempt_part import SentBody, public_salt
from statesvc.delivery.notification import Notification, body_of, notification_of
from statesvc.log.json_compression import decompress_json
from statesvc.subscriptions.recorded_attempts import RecordedAttempt

_SQL = queries("statesvc.subscriptions", "sent_notifications")
# Of what one page reads: a filter that few notifications fit costs no more.
WINDOW_ROWS: Final = 10_000
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)

NotificationOutcome = Literal["waiting", "delivered", "given_up", "coalesced", "cancelled"]
BodyState = Literal["shown", "not_sent", "erased", "withheld", "unavailable"]


class NotificationPosition(NamedTuple):
    """Position after the time, the shipment and the sequence by which they are ordered."""

    at: datetime
    shipment_id: UUID
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFilter:
    """Which notifications of a subscription; None: any.

    `numbers`: tracking numbers as they are compared.
    """

    subscription_id: UUID
    outcome: NotificationOutcome | None = None
    since: datetime | None = None
    carrier_id: str | None = None
    shipment_ids: Sequence[UUID] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTry(RecordedAttempt):
    body_commitment: bytes | None
    canonical: bytes | None = field(repr=False)

    @property
    def committed(self) -> str | None:
        """The commitment to the body, from its entry where it has ended."""
        if self.body_commitment is not None:
            return self.body_commitment.hex()
        if self.canonical is None:
            return None
        document = orjson.loads(decompress_json(self.canonical))
        covered = (
            each
            for one in document.get("covers", ())
            if one["sequence"] == self.sequence
            for each in one.get("tries", ())
        )
        tries = document["tries"] if document["sequence"] == self.sequence else covered
        return next((one["body_commitment"] for one in tries if one["number"] == self.number), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentNotification:
    """One notification, how it ended, and its tries. `available_at`: when a waiting one is due."""

    place: NotificationPosition
    notification: Notification
    outcome: str
    available_at: datetime | None
    tries: Sequence[SentTry]

    def sent_body(self, keyring: Keyring, *, personal: bool) -> tuple[str | None, BodyState]:
        """Return the body of the last try, or why it is not shown.

        `personal`: with personal fields, if it holds any.
        """
        if not self.tries:
            return None, "not_sent"
        last, salt = self.tries[-1], public_salt(self.notification)
        if salt is None and last.sealed_key is None:
            return None, "erased"
        try:
            sent = _opening(last, keyring) if salt is None else SentBody(salt, None)
        except SealError:
            sent = None
        if sent is None:
            return None, "unavailable"
        for body in [*([] if sent.stored is None else [sent.stored]), *self._thin_bodies()]:
            if hashlib.sha256(sent.salt + body.encode()).hexdigest() == last.committed:
                return (
                    (None, "withheld") if _is_personal(body) and not personal else (body, "shown")
                )
        return None, "unavailable"

    def _thin_bodies(self) -> list[str]:
        """Return each body that may have been sent of the change: before or after others were left
        out, in this epoch or one before.
        """
        one = self.notification
        epochs = range(one.epoch or FIRST_EPOCH, FIRST_EPOCH - 1, -1)
        of_epochs = [
            replace(one, epoch=None if epoch == FIRST_EPOCH else epoch) for epoch in epochs
        ]
        return [
            body_of(each).decode()
            for of_epoch in of_epochs
            for each in (of_epoch, replace(of_epoch, gap=None))
        ]


def _opening(sent: SentTry, keyring: Keyring) -> SentBody | None:
    part = sent.part(keyring)
    return None if part is None else SentBody.of(part)


def _is_personal(body: str) -> bool:
    event = orjson.loads(body)["data"].get("event") or {}
    return "description" in event


async def shipments_of_numbers(
    connection: AsyncConnection[Any], numbers: Sequence[str], carrier_id: str | None
) -> list[UUID]:
    """Return the shipments that bear one of these numbers, as they are compared."""
    cursor = await connection.execute(
        _SQL["shipments"], {"numbers": list(numbers), "carrier_id": carrier_id}
    )
    return [shipment_id for (shipment_id,) in await cursor.fetchall()]


async def read_page(
    connection: AsyncConnection[Any],
    wanted: NotificationFilter,
    *,
    before: NotificationPosition | None,
    limit: int,
    window: int = WINDOW_ROWS,
) -> tuple[list[SentNotification], NotificationPosition | None]:
    """Return the newest first, and where the next page begins; None: this is the last.

    A page may hold fewer than there are.
    """
    found = await _read(connection, wanted, before=before, limit=limit, window=window)
    if len(found) == limit:
        return found, found[-1].place
    row = await (
        await connection.execute(
            _SQL["window_end"], {**_bounds(wanted, before), "window": window}, prepare=False
        )
    ).fetchone()
    return found, None if row is None else NotificationPosition(*row)


async def find_notification(
    connection: AsyncConnection[Any], subscription_id: UUID, webhook_id: str
) -> NotificationPosition | None:
    """Return where it is; None where the subscription has none of this id, or its month
    has left the database.
    """
    row = await (
        await connection.execute(
            _SQL["place"], {"subscription_id": subscription_id, "webhook_id": webhook_id}
        )
    ).fetchone()
    return None if row is None else NotificationPosition(*row)


async def read_notification(
    connection: AsyncConnection[Any], subscription_id: UUID, place: NotificationPosition
) -> SentNotification | None:
    """Return the notification at a place, if its shipment's entries are in the database."""
    behind = place._replace(sequence=place.sequence + 1)
    wanted = NotificationFilter(
        subscription_id=subscription_id, since=place.at, shipment_ids=[place.shipment_id]
    )
    found = await _read(connection, wanted, before=behind, limit=1, window=1)
    return next(iter(found), None)


async def _read(
    connection: AsyncConnection[Any],
    wanted: NotificationFilter,
    *,
    before: NotificationPosition | None,
    limit: int,
    window: int,
) -> list[SentNotification]:
    filters = {
        "outcome": wanted.outcome,
        "carrier_id": wanted.carrier_id,
        "limit": limit,
        "window": window,
    }
    cursor = await connection.execute(
        _SQL["page"], {**_bounds(wanted, before), **filters}, prepare=False
    )
    rows = await cursor.fetchall()
    named = {"shipment_ids": [row[0] for row in rows], "sequences": [row[1] for row in rows]}
    tries: dict[str, list[SentTry]] = {row[2]: [] for row in rows}
    if rows:
        typed = connection.cursor(row_factory=class_row(SentTry))
        await typed.execute(
            _SQL["tries"], {"subscription_id": wanted.subscription_id, **named}, prepare=False
        )
        for one in await typed.fetchall():
            tries[one.webhook_id].append(one)
    return [
        SentNotification(
            place=NotificationPosition(row[4], row[0], row[1]),
            notification=notification_of(row[1], row[2:16]),
            outcome=row[16],
            available_at=row[17],
            tries=tries[row[2]],
        )
        for row in rows
    ]


def _bounds(wanted: NotificationFilter, before: NotificationPosition | None) -> dict[str, Any]:
    at, shipment_id, sequence = before or (None, None, None)
    return {
        "subscription_id": wanted.subscription_id,
        "since": wanted.since or _FIRST,
        "shipment_ids": None if wanted.shipment_ids is None else list(wanted.shipment_ids),
        "at": at,
        "shipment_id": shipment_id,
        "sequence": sequence,
    }
