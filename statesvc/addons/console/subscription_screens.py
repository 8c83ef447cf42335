"""Subscriptions: those in trouble first; a subscription with its limiter and attempts.

With a reason also the receiver's answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.addons.console.limiter_chart import limiter_charts
from statesvc.addons.console.screen import PageRequest, PersonalDataRequest, Screen, Shown, Values
from statesvc.addons.console.shipment_screens import path_of
from statesvc.api.subscriptions.subscription_operations import LIST, SCREEN, get_subscription
from statesvc.api.subscriptions.subscription_operations import ONE as CALL
from statesvc.background.duration import duration
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.delivery.outcome_words import outcome_words
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import draw
from statesvc.subscriptions.recorded_attempts import RecentTries, read_recent_tries

_ATTEMPTS: Final = 60
_SQL: Final = queries("statesvc.addons.console", "subscription_screens")
WAITING_MAX: Final = 10_000
_LISTED_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverHealth:
    """Health in the last hour; None without attempts.

    `success_share`; `p50` and `p95` of deliveries, in milliseconds.
    """

    waiting: int
    oldest_seconds: float | None
    next_at: datetime | None
    again: int
    tries: int
    delivered: int
    success_share: float | None
    p50: int | None
    p95: int | None


async def read_health(
    connection: AsyncConnection[Any], subscription_id: UUID, recent: RecentTries
) -> ReceiverHealth:
    """Count waiting notifications; attempts are given."""
    asked = {"subscription_id": subscription_id, "count_max": WAITING_MAX}
    ((waiting, oldest, next_at, again),) = await (
        await connection.execute(_SQL["waiting"], asked)
    ).fetchall()
    taken = sorted(one.duration_ms for one in recent.tries if one.is_delivered)
    return ReceiverHealth(
        waiting=waiting,
        oldest_seconds=oldest,
        next_at=next_at,
        again=again,
        tries=len(recent.tries),
        delivered=len(taken),
        success_share=len(taken) / len(recent.tries) if recent.tries else None,
        p50=_quantile(taken, 0.5),
        p95=_quantile(taken, 0.95),
    )


async def read_waiting(
    connection: AsyncConnection[Any], subscription_id: UUID
) -> Sequence[Mapping[str, Any]]:
    """List the first waiting notifications."""
    cursor = await connection.execute(
        _SQL["waiting_list"], {"subscription_id": subscription_id, "limit": _LISTED_MAX}
    )
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]


def finding_sentence(one: Mapping[str, Any], health: ReceiverHealth, now: datetime) -> str | None:
    """Describe the fault and its automatic remedy; None: no fault."""
    if one["state"] == "disabled":
        why = one["disabled_why"] or "no reason given"
        return f"It is disabled ({why}). Nothing is sent until it is resumed; what was missed can be sent again from then."
    if one["state"] == "paused":
        return f"It is paused. {health.waiting:,} notifications wait, and are sent in order once it is resumed."
    failing = one["failing"]
    if failing is None:
        return None
    since = duration((now - datetime.fromisoformat(failing["since"])).total_seconds())
    last = outcome_words(failing["last_outcome"], failing["last_status_code"])
    return (
        f"It has taken nothing for {since}: {failing['failures']:,} tries failed, the last: {last}. "
        "It is tried again from time to time; once it answers, what waits is sent by itself, in order."
    )


@dataclass(frozen=True, slots=True)
class SubscriptionScreen:
    pool: Connections

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        """Show it without the receiver's answers."""
        return await self._values(visit, visit.query("cursor"))

    async def show_answers(self, visit: PageRequest, values: Values) -> Shown:
        return Shown(
            "subscription.html",
            await self._values(visit, values.get("cursor", ""), with_answers=True),
        )

    async def _values(
        self, visit: PageRequest, cursor: str, *, with_answers: bool = False
    ) -> Mapping[str, Any]:
        subscription_id = visit.path("subscription_id")
        # the call knows whether the key may see it
        one = await visit.call_api(f"GET {CALL}", subscription_id=subscription_id)
        attempts = await visit.call_api(
            f"GET {CALL}/attempts",
            subscription_id=subscription_id,
            cursor=cursor or None,
            limit=_ATTEMPTS,
            responses=with_answers,
        )
        tab = visit.query("tab") if visit.query("tab") == "waiting" else ""
        async with self.pool.connection() as connection:
            recent = await read_recent_tries(connection, UUID(one["id"]))
            health = await read_health(connection, UUID(one["id"]), recent)
            waiting = await read_waiting(connection, UUID(one["id"])) if tab else ()
        wanted = visit.query("outcome")
        shown = [
            each
            for each in attempts["items"]
            if wanted in {"", "delivered" if each["outcome"] == "delivered" else "failed"}
        ]
        return {
            "title": one.get("name") or one["url"],
            "health": health,
            "waiting_max": WAITING_MAX,
            "trouble": finding_sentence(one, health, recent.now),
            "tab": tab,
            "waiting": [(each, path_of(each)) for each in waiting],
            "outcome": wanted,
            "shipment_path": path_of,
            "one": one,
            "facts": draw(get_subscription.view, one),
            "path": visit.at(SCREEN.format(subscription_id=one["id"])),
            "attempts": shown,
            "next_cursor": attempts["next_cursor"],
            "cursor": cursor,
            "limiter": limiter_charts(recent, limit=one["limiter"]["limit"]),
            "with_answers": with_answers,
        }


def subscription_pages(pool: Connections) -> tuple[list[Screen], list[PersonalDataRequest]]:
    screen = SubscriptionScreen(pool)
    about: dict[str, Any] = {"title": "Subscription", "section": LIST}
    return (
        [
            Screen(
                path=SCREEN,
                template="subscription.html",
                show=screen.show,
                scope=Scope.SUBSCRIPTIONS,
                **about,
            )
        ],
        [
            PersonalDataRequest(
                path=SCREEN + "/answers", disclose=screen.show_answers, scope=Scope.PII, **about
            )
        ],
    )


def _quantile(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None
