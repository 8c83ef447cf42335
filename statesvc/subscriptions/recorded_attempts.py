"""Recorded attempts of a subscription, and how fast its receiver is notified."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row
from pydantic import Field

from events.crypto.keyring import Keyring, attempt_context, ended_context
from statesvc.database.queries import queries
from statesvc.delivery.attempt_part import Part, Response, opened_part, parts_by_number
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.log.json_compression import open_part

RECENT_TRIES_MAX: Final = 3_000

_SQL = queries("statesvc.subscriptions", "recorded_attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAttempt:
    """A try at a notification, or a test, which belongs to no shipment.

    Once the notification has ended, its entry in the log lists the try; `recorded_at` is the
    entry's.
    """

    webhook_id: str
    shipment_id: UUID | None
    sequence: int | None
    number: int
    outcome: str
    status_code: int | None
    duration_ms: int
    started_at: datetime
    recorded_at: datetime
    type: str
    carrier_id: str | None
    tracking_number: str | None = field(repr=False)
    last_number: int | None
    covering_id: str
    """The `webhook_id` of that entry, perhaps of a covering notification."""
    sealed_part: bytes | None = field(repr=False)
    sealed_key: bytes | None = field(repr=False)
    """Key of its shipment; None once erased."""

    def part(self, keyring: Keyring) -> Part | None:
        """Return the stored part of this try; None: erased or never stored.

        Raises SealError if changed.
        """
        if self.shipment_id is None or self.sealed_part is None or self.sealed_key is None:
            return None
        key = keyring.open_shipment_key(self.sealed_key, self.shipment_id)
        if self.last_number is None:
            return opened_part(
                open_part(
                    key,
                    self.sealed_part,
                    attempt_context(self.shipment_id, self.webhook_id, self.number),
                )
            )
        part = opened_part(
            open_part(
                key,
                self.sealed_part,
                ended_context(self.shipment_id, self.covering_id, self.last_number),
            )
        )
        covered = None if self.covering_id == self.webhook_id else self.sequence
        return parts_by_number(part, covered).get(self.number)

    def response(self, keyring: Keyring) -> Response | None:
        """Return the receiver's answer, as `part`."""
        part = self.part(keyring)
        return None if part is None else Response.of(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterSummary:
    """Limiter of a subscription, over all notifiers.

    No `notifiers`: idle, so its pace is unknown.
    """

    limit: Annotated[
        int,
        Field(
            description=(
                "Requests at a time; 0: nothing was sent lately, the next ones begin carefully."
            )
        ),
    ]
    in_flight: int
    mean_latency_seconds: Annotated[
        float | None, Field(description="Of answers 2xx while few requests are under way.")
    ]
    breaker: Annotated[
        str,
        Field(
            description=(
                "closed; open: most attempts failed, nothing but a probe from time to time;"
                " half_open: the probe is under way."
            )
        ),
    ]
    next_allowed_at: Annotated[
        datetime | None,
        Field(description="Nothing is sent before: it asked to wait, or the breaker is open."),
    ]
    notifiers: Annotated[int, Field(description="How many notifier processes sent to it lately.")]


class AttemptPosition(NamedTuple):
    """A place in the list: before this attempt."""

    recorded_at: datetime
    webhook_id: str
    number: int


async def read_attempts(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    *,
    before: AttemptPosition | None,
    limit: int,
) -> list[RecordedAttempt]:
    """Return the tries, the newest first."""
    recorded_at, webhook_id, number = before or (None, None, None)
    cursor = connection.cursor(row_factory=class_row(RecordedAttempt))
    await cursor.execute(
        _SQL["attempts"],
        {
            "subscription_id": subscription_id,
            "before_recorded_at": recorded_at,
            "before_webhook_id": webhook_id,
            "before_number": number,
            "limit": limit,
        },
    )
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A request to a receiver: start, duration and outcome."""

    started_at: datetime
    duration_ms: int
    outcome: str

    @property
    def ended_at(self) -> datetime:
        """At least a millisecond after it began."""
        return self.started_at + timedelta(milliseconds=max(self.duration_ms, 1))

    @property
    def is_delivered(self) -> bool:
        return self.outcome == AttemptOutcome.DELIVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentTries:
    """Attempts of the last hour that have ended, the newest first. `is_capped`: there were more."""

    now: datetime
    tries: list[Try]
    is_capped: bool


async def read_recent_tries(connection: AsyncConnection[Any], subscription_id: UUID) -> RecentTries:
    """Return the recent tries, up to the bound."""
    ((now,),) = await (await connection.execute(_SQL["now"])).fetchall()
    cursor = connection.cursor(row_factory=class_row(Try))
    await cursor.execute(
        _SQL["recent_tries"],
        {"subscription_id": subscription_id, "now": now, "limit": RECENT_TRIES_MAX},
    )
    tries = await cursor.fetchall()
    return RecentTries(now=now, tries=tries, is_capped=len(tries) == RECENT_TRIES_MAX)


async def read_limiter(connection: AsyncConnection[Any], subscription_id: UUID) -> LimiterSummary:
    """Read the limiter as the notifiers last published it."""
    cursor = connection.cursor(row_factory=class_row(LimiterSummary))
    await cursor.execute(_SQL["limiter"], {"subscription_id": subscription_id})
    found = await cursor.fetchone()
    assert found is not None  # noqa: S101 - the clock always has a row
    return found
