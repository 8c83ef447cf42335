"""Policy about subscribers: a receiver that only fails causes a warning, and is finally disabled.

Time without attempts is not failure: both decisions require failures over a period, so a short
outage before a quiet week disables no subscription. Disabling is an action in the log (actor
`policy`) and a notice to the operator; the subscription shows the reason, and the time from which
to replay. Lock order: ARCHITECTURE.md; the review waits for no lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from statesvc.database.queries import Pending, Sender, columns, queries, send
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.health.notices import Notice, NoticeKind, write_notices
from statesvc.log.actions import Action, record_actions
from statesvc.log.fanouts import open_details
from statesvc.telemetry.metrics import Telemetry

WARN_AFTER: Final = timedelta(hours=24)
DISABLE_AFTER: Final = timedelta(days=5)
# Required for disabling.
FAILURES_MIN: Final = 20
# Between the first and the last failure.
SPREAD_MIN: Final = timedelta(hours=12)

ACTOR: Final = "policy"
GONE: Final = "the subscriber answered 410 Gone"
REVIEWED_AT_ONCE: Final = 100

WHAT_TO_DO: Final = (
    "Once the receiver works again: POST /v1/subscriptions/{id}/test shows it, POST .../resume"
    " sends what waits and what comes; POST .../replay with since = missed_since sends what was"
    " missed."
)

WHAT_IS_AHEAD: Final = (
    f"Without a success it is disabled {DISABLE_AFTER.days} days after the first failure. POST"
    " /v1/subscriptions/{id}/test shows what the receiver says now; .../pause collects without"
    " sending."
)

_SQL = queries("statesvc.notifier", "policy")
_log = structlog.get_logger()
REVIEW_BOUNDS: Final[Mapping[str, Any]] = {
    "warn_seconds": WARN_AFTER.total_seconds(),
    "spread_seconds": SPREAD_MIN.total_seconds(),
    "disable_seconds": DISABLE_AFTER.total_seconds(),
    "failures_min": FAILURES_MIN,
}
_LOG_EVENTS: Final = {
    NoticeKind.FAILING: "subscription_failing",
    NoticeKind.DISABLED: "subscription_disabled",
    NoticeKind.RECOVERED: "subscription_recovered",
}
_TALLY = ("subscription_ids", "failures", "outcomes", "status_codes")
_BLAMED: Final = frozenset(
    {
        AttemptOutcome.REFUSED,
        AttemptOutcome.GONE,
        AttemptOutcome.TIMED_OUT,
        AttemptOutcome.UNREACHABLE,
        AttemptOutcome.CONNECTION_REFUSED,
        AttemptOutcome.NAME_NOT_FOUND,
        AttemptOutcome.CERTIFICATE_NOT_TRUSTED,
        AttemptOutcome.ADDRESS_REFUSED,
        AttemptOutcome.UNROUTABLE,
        AttemptOutcome.NOT_STORED,
        AttemptOutcome.DENIED,
    }
)


def blames_receiver(outcome: AttemptOutcome) -> bool:
    """Return whether the receiver is to blame for an attempt that ended like this; it is not if we
    could not sign or send it.
    """
    return outcome in _BLAMED


@dataclass(frozen=True, slots=True)
class Disabled:
    """The actions and notices about subscriptions that were just disabled."""

    actions: Sequence[Action] = ()
    notices: Sequence[Notice] = ()


@dataclass(slots=True)
class ReceiverOutcomes:
    """Outcomes of a group's attempts, by subscription, in the order in which they ended."""

    recovered: set[UUID] = field(default_factory=set)
    """Accepted at least one notification."""
    failed: dict[UUID, tuple[int, AttemptOutcome, int | None]] = field(default_factory=dict)
    """Number of failures after the last that was accepted, and how the last of them failed."""

    def add(self, subscription_id: UUID, outcome: AttemptOutcome, status_code: int | None) -> None:
        """Add the next attempt."""
        if outcome is AttemptOutcome.DELIVERED:
            self.recovered.add(subscription_id)
            # only failures after the last success count towards disabling
            self.failed.pop(subscription_id, None)
        elif blames_receiver(outcome):
            before = self.failed.get(subscription_id, (0,))[0]
            self.failed[subscription_id] = before + 1, outcome, status_code


async def note(
    connection: Sender, outcomes: ReceiverOutcomes, *, now: datetime
) -> Pending[list[Notice]]:
    """Store since when receivers fail, in the caller's transaction and pipeline.

    Returns notices about those that recovered.
    """
    if outcomes.failed:
        # one statement locks all, so that two settlements never hold each other's
        await connection.execute(
            _SQL["lock_failing"],
            {"subscription_ids": sorted(outcomes.recovered | outcomes.failed.keys())},
        )
    # before the new failures are noted: a receiver that recovered and failed again fails since now
    recovered = await send(
        connection,
        _SQL["forget_failing"],
        {"subscription_ids": sorted(outcomes.recovered)},
        lambda rows: [_recovered(*row) for row in rows],
    )
    if outcomes.failed:
        rows = [
            (one, failures, outcome.value, status)
            for one, (failures, outcome, status) in sorted(outcomes.failed.items())
        ]
        await connection.execute(_SQL["note_failing"], {"now": now, **columns(rows, _TALLY)})
    return recovered


async def disable(
    connection: Sender, subscription_ids: Sequence[UUID], *, why: str, now: datetime
) -> Disabled:
    """Disable these and write the notices.

    The caller records the actions, in the batch of its transaction.
    """
    parameters: dict[str, Any] = {
        "subscription_ids": sorted(subscription_ids),
        "why": why,
        "now": now,
    }
    asked = await send(connection, _SQL["disable"], parameters, list)
    actions, notices = [], []
    # only those that were live: the statement skips what is disabled already, so no action is
    # written twice
    for subscription_id, missed_since, *waiting in await asked.rows():
        details = {"why": why, "missed_since": rfc3339(missed_since)}
        stated = {**details, **open_details(*waiting)}
        actions.append(
            Action(
                actor=ACTOR,
                verb="subscription.disable",
                target=_target(subscription_id),
                details=stated,
            )
        )
        notices.append(
            Notice(
                kind=NoticeKind.DISABLED,
                target=_target(subscription_id),
                details={**details, "what_to_do": WHAT_TO_DO},
            )
        )
    await write_notices(connection, notices, now=now)
    return Disabled(actions, notices)


async def review(connection: AsyncConnection[Any]) -> list[Notice]:
    """Warn of receivers that have failed for long, disable those beyond the bound.

    Returns the committed notices.
    """
    notices: list[Notice] = []
    actions: list[Action] = []
    warned: list[UUID] = []
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["read_failing"], {**REVIEW_BOUNDS, "limit": REVIEWED_AT_ONCE}
        )
        for subscription_id, since, failures, last, ends, now in await cursor.fetchall():
            if ends:
                why = f"all {failures} attempts failed since {rfc3339(since)}, the last one: {last}"
                disabled = await disable(connection, [subscription_id], why=why, now=now)
                actions += disabled.actions
                notices += disabled.notices
                continue
            warned.append(subscription_id)
            details = {
                "failing_since": rfc3339(since),
                "failures": failures,
                "last": last,
                "what_to_do": WHAT_IS_AHEAD,
            }
            notice = Notice(
                kind=NoticeKind.FAILING, target=_target(subscription_id), details=details
            )
            # in the transaction that marks it as warned: a crash neither repeats nor loses the
            # notice
            await write_notices(connection, [notice], now=now)
            notices.append(notice)
        if warned:
            await connection.execute(_SQL["warned"], {"subscription_ids": warned, "now": now})
        # last: it takes the batch's time and id, after every lock
        await record_actions(connection, actions)
    return notices


def log_notices(telemetry: Telemetry, notices: Sequence[Notice]) -> None:
    """Log and count each notice, once: call it after the commit."""
    for notice in notices:
        log = _log.info if notice.kind is NoticeKind.RECOVERED else _log.warning
        about = notice.target.removeprefix("subscription ")
        log(
            _LOG_EVENTS[notice.kind],
            subscription_id=about,
            reason=notice.details.get("why"),
            count=notice.details.get("failures"),
        )
        telemetry.notices.add(1, {"type": notice.kind.value})


def _recovered(subscription_id: UUID, since: datetime, failures: int) -> Notice:
    details = {"failing_since": rfc3339(since), "failures": failures}
    return Notice(kind=NoticeKind.RECOVERED, target=_target(subscription_id), details=details)


def _target(subscription_id: UUID) -> str:
    return f"subscription {subscription_id}"
