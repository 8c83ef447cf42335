"""Subscriptions: those in trouble first; a subscription with its limiter and attempts.

With a reason also the receiver's answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID

from markupsafe import Markup
from psycopg import AsyncConnection

from statesvc.addons.console.charts import limiter_charts
from statesvc.addons.console.formats import (
    alarm,
    chip,
    heading,
    instant,
    link,
    percent,
    seconds,
    tabs,
)
from statesvc.addons.console.screen import Act, Card, Cards, PageBlock, PageRequest, Screen
from statesvc.addons.console.shipment_screens import LIST as SHIPMENTS
from statesvc.addons.console.shipment_screens import path_of
from statesvc.api.subscriptions.subscription_operations import LIST, SCREEN, get_subscription
from statesvc.api.subscriptions.subscription_operations import ONE as CALL
from statesvc.background.duration import duration
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.delivery.outcome import outcome_words
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import Column, Line, Table, draw
from statesvc.shipments.plain_names import spaced
from statesvc.subscriptions.recorded_attempts import RecentTries, read_recent_tries

_ATTEMPTS: Final = 60
_SQL: Final = queries("statesvc.addons.console", "subscription_screens")
WAITING_MAX: Final = 10_000
_LISTED_MAX: Final = 50
# Share of deliveries below which it shows as a fault.
_SHARE_MIN: Final = 0.95


class ReceiverBacklog(NamedTuple):
    """What waits for a subscription: how many, since when, when the next try is, and how many
    were tried before.
    """

    waiting: int
    oldest_seconds: float | None
    next_at: datetime | None
    again: int


async def read_backlog(connection: AsyncConnection[Any], subscription_id: UUID) -> ReceiverBacklog:
    asked = {"subscription_id": subscription_id, "count_max": WAITING_MAX}
    (row,) = await (await connection.execute(_SQL["waiting"], asked)).fetchall()
    return ReceiverBacklog(*row)


async def read_waiting(
    connection: AsyncConnection[Any], subscription_id: UUID
) -> Sequence[Mapping[str, Any]]:
    """List the first waiting notifications."""
    cursor = await connection.execute(
        _SQL["waiting_list"], {"subscription_id": subscription_id, "limit": _LISTED_MAX}
    )
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]


def finding_sentence(one: Mapping[str, Any], backlog: ReceiverBacklog, now: datetime) -> str | None:
    """Describe the fault and its automatic remedy; None: no fault."""
    if one["state"] == "disabled":
        why = one["disabled_why"] or "no reason given"
        return (
            f"It is disabled ({why}). Nothing is sent until it is resumed; what was missed can be"
            " sent again from then."
        )
    if one["state"] == "paused":
        return (
            f"It is paused. {backlog.waiting:,} notifications wait, and are sent in order once it"
            " is resumed."
        )
    failing = one["failing"]
    if failing is None:
        return None
    since = duration((now - datetime.fromisoformat(failing["since"])).total_seconds())
    last = outcome_words(failing["last_outcome"], failing["last_status_code"])
    return (
        f"It has taken nothing for {since}: {failing['failures']:,} tries failed, the last: {last}."
        " It is tried again from time to time; once it answers, what waits is sent by itself, in"
        " order."
    )


_WAITING: Final = Table(
    Column("{carrier_id} {tracking_number}", "Shipment", link=lambda row: row["path"]),
    Column(
        lambda row: (
            f"statement {row['sequence']}" if row["sequence"] > 0 else "what did not happen"
        ),
        "Because of",
    ),
    Column(lambda row: instant(row["created_at"]), "Waits since"),
    Column("attempts", "Tried"),
    Column("next_try", "Next try"),
    title="Waiting notifications",
    empty="Nothing waits.",
)
_TRIED: Final = (
    Column("started_at", "When"),
    Column("{carrier_id} {tracking_number}", "Shipment", link=lambda row: row["path"]),
    Column("what", "What"),
    Column("webhook_id", "ID", wide=True),
    Column("number", "Try", wide=True),
    Column("outcome_chip", "Outcome"),
    Column("{duration_ms:,} ms", "Took"),
)


@dataclass(frozen=True, slots=True)
class SubscriptionScreen:
    pool: Connections

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        """Show it; the receiver's answers only if the visitor says why."""
        at = {"subscription_id": visit.path("subscription_id")}
        # the call knows whether the key may see it
        one = await visit.call_api(f"GET {CALL}", **at)
        cursor, outcome = visit.query("cursor") or None, visit.query("outcome")
        attempts = await visit.call_api(
            f"GET {CALL}/attempts",
            **at,
            cursor=cursor,
            limit=_ATTEMPTS,
            responses=visit.include is not None,
        )
        is_waiting, subscription_id = visit.query("tab") == "waiting", UUID(one["id"])
        async with self.pool.connection() as connection:
            recent = await read_recent_tries(connection, subscription_id)
            backlog = await read_backlog(connection, subscription_id)
            waiting = await read_waiting(connection, subscription_id) if is_waiting else ()
        path = visit.at(SCREEN.format(subscription_id=one["id"]))
        blocks: list[PageBlock] = [
            *_trouble(visit, one, backlog, recent.now),
            _cards(one, backlog, recent),
        ]
        blocks += limiter_charts(recent, limit=one["limiter"]["limit"])
        entries = [
            ("All attempts", path, not is_waiting and not outcome),
            ("Failed", f"{path}?outcome=failed", outcome == "failed"),
            ("Delivered", f"{path}?outcome=delivered", outcome == "delivered"),
            (f"Waiting: {backlog.waiting:,}", f"{path}?tab=waiting", is_waiting),
        ]
        blocks.append(tabs("Notifications", entries))
        if is_waiting:
            blocks += draw(_WAITING, {"items": [_waiting_row(visit, each) for each in waiting]})
            if backlog.waiting > len(waiting):
                blocks.append(Line(f"{len(waiting)} of {backlog.waiting:,}."))
        else:
            tries = [
                _try_row(visit, path, each)
                for each in attempts["items"]
                if outcome in {"", "delivered" if each["outcome"] == "delivered" else "failed"}
            ]
            blocks += draw(_tried(visit), {"items": tries})
        if visit.include:
            blocks.append(Line("This reading is an entry of the log."))
        return {
            "title": one.get("name") or one["url"],
            "crumb": (LIST, "Subscriptions", one["url"]),
            "chips": [_state(one)],
            "acts": _acts(visit, one),
            "blocks": [*blocks, heading("What it gets"), *draw(get_subscription.view, one)],
            "wanted": {"cursor": cursor or "", "outcome": outcome},
            "next_cursor": None if is_waiting else attempts["next_cursor"],
            "masked": "" if visit.include else "Answers may repeat personal data.",
        }


def _tried(visit: PageRequest) -> Table:
    may_send = visit.session.ends_at is None and visit.may_change(Scope.SUBSCRIPTIONS)
    again = Column("again", "Action", link=lambda row: f"{row['again_path']}")
    answer = Column("answer", "Answer")
    columns = [*_TRIED, *([again] if may_send else ()), *([answer] if visit.include else ())]
    return Table(*columns, title="Attempts", empty="Nothing was sent yet.")


def _shipment_path(visit: PageRequest, row: Mapping[str, Any]) -> str:
    shown = visit.is_shown(SHIPMENTS) and row["tracking_number"]
    return path_of({"discriminator": "", **row}) if shown else ""


def _waiting_row(visit: PageRequest, row: Mapping[str, Any]) -> dict[str, Any]:
    is_due = row["available_at"] <= datetime.now(UTC)
    later = "due: waits for its turn" if is_due else instant(row["available_at"])
    next_try = "under way" if row["is_under_way"] else later
    return {**row, "next_try": next_try, "path": _shipment_path(visit, row)}


def _try_row(visit: PageRequest, path: str, row: Mapping[str, Any]) -> dict[str, Any]:
    what = spaced(row["type"].replace("shipment.", ""))
    style = "good" if row["outcome"] == "delivered" else "bad"
    return {
        **row,
        "path": _shipment_path(visit, row),
        "what": Markup("{} {}").format(what, chip("test")) if row["test"] else what,
        "outcome_chip": chip(outcome_words(row["outcome"], row["status_code"]), style),
        "again": None if row["test"] else "send again",
        "again_path": f"{path}/notifications/{row['webhook_id']}/resend",
        "answer": _answer(row) if visit.include else None,
    }


def _answer(row: Mapping[str, Any]) -> Markup | str:
    if row["response"] is None:
        return "none stored"
    headers = [f"{name}: {value}" for name, value in row["response_headers"] or []]
    text = "\n".join([*headers, "", row["response"]])
    return Markup(
        '<details><summary>show</summary><pre tabindex="0" aria-label="Answer">{}</pre></details>'
    ).format(text)


def _state(one: Mapping[str, Any]) -> Markup:
    if one["state"] == "disabled":
        return chip("disabled", "bad")
    if one["failing"]:
        return chip(f"{one['state']}, failing", "bad")
    return chip(one["state"], "warn" if one["state"] == "paused" else "good")


def _acts(visit: PageRequest, one: Mapping[str, Any]) -> list[Act]:
    pause = ("pause", "Pause") if one["state"] == "active" else ("resume", "Resume")
    ends = [("test", "Send a test"), ("replay", "Send a range again"), pause]
    ends += [("rotate-secret", "New secret")]
    ends += [("change", "Change"), ("delete", "Delete")] if visit.session.ends_at is None else []
    path = SCREEN.format(subscription_id=one["id"])
    acts = [
        Act(f"{path}/{end}", words, Scope.SUBSCRIPTIONS, is_main=end in {"test", "resume"})
        for end, words in ends
    ]
    if visit.session.ends_at is None:
        owner = f"/console/portal-link?owner={quote(one['owner'], safe='')}"
        acts.append(Act(owner, "Link to its portal", Scope.SUBSCRIPTIONS))
    return acts


def _trouble(
    visit: PageRequest, one: Mapping[str, Any], backlog: ReceiverBacklog, now: datetime
) -> Iterator[Markup]:
    """Yield what is wrong with it, in a box that leads to the runbook."""
    said = finding_sentence(one, backlog, now)
    if said is None:
        return
    if one["missed_since"]:
        said = Markup("{} <b>Missed since {}</b>: resume, then send it again from there.").format(
            said, instant(one["missed_since"])
        )
    page = "/console/runbook/SubscriberFailing"
    leads = visit.is_shown("/console/runbook")
    actions = [link(page, "Runbook: SubscriberFailing", "button quiet")] if leads else []
    yield alarm(said, "human" if one["state"] == "paused" else "now", *actions)


def _cards(one: Mapping[str, Any], backlog: ReceiverBacklog, recent: RecentTries) -> Cards:
    limiter, tries = one["limiter"], len(recent.tries)
    taken = sorted(each.duration_ms for each in recent.tries if each.is_delivered)
    share = len(taken) / tries if tries else None
    waits = [f"oldest {seconds(backlog.oldest_seconds)}"] if backlog.waiting else ["nothing waits"]
    waits += [f"{backlog.again:,} were tried before"] if backlog.again else []
    waits += ["merges when too much waits"] if one["coalesce"] and backlog.waiting else []
    pace = [f"{limiter['in_flight']:,} under way, breaker {spaced(limiter['breaker'])}"]
    next_at = limiter["next_allowed_at"] or backlog.next_at
    pace += [Markup("next try {}").format(instant(next_at))] if next_at and backlog.waiting else []
    is_open = limiter["notifiers"] and limiter["breaker"] != "closed"
    return Cards(
        [
            Card(
                "Waiting",
                f"{backlog.waiting:,}" + "+" * (backlog.waiting == WAITING_MAX),
                note=" · ".join(waits),
            ),
            Card(
                "Delivered, last hour",
                percent(share) or "—",
                style="" if share is None or share >= _SHARE_MIN else "bad",
                note=f"{len(taken):,} of {tries:,} tries",
            ),
            Card(
                "Answer time, p50 / p95",
                f"{_quantile(taken, 0.5):,} / {_quantile(taken, 0.95):,}" if taken else "—",
                "ms" if taken else "",
                note="of what it took within an hour" if taken else "no answer yet",
            ),
            Card(
                "Pace",
                f"{limiter['limit']:,}" if limiter["notifiers"] else "—",
                "at a time",
                note=Markup(" · ").join(pace)
                if limiter["notifiers"]
                else "nothing was sent lately",
                note_style="bad" if is_open else "soft",
            ),
        ]
    )


def subscription_pages(pool: Connections) -> list[Screen]:
    about: dict[str, Any] = {"scope": Scope.SUBSCRIPTIONS, "personal": Scope.PII, "section": LIST}
    show = SubscriptionScreen(pool).show
    return [Screen(path=SCREEN, title="Subscription", show=show, **about)]


def _quantile(ordered: Sequence[int], share: float) -> int:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
