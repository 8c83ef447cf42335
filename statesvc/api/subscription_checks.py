"""Checks of `GET /v1/status`: subscriptions that take no notifications, or too few."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from yarl import URL

from statesvc.background.duration import duration
from statesvc.delivery.outcome import outcome_words
from statesvc.health.database_sample import SubscriptionGauges
from statesvc.health.finding import Finding, Urgency

# Subscriptions of a finding that are named each; more share a line, with the worst.
NAMED_MAX: Final = 3
_SUBSCRIBER: Final = Finding(urgency=Urgency.HUMAN, about="", text="", page="SubscriberFailing")


class Unsent(NamedTuple):
    """A subscription without deliveries. `alike`: how many are disabled or fail in the same way."""

    subscription_id: str
    name: str | None
    url: str
    failing_seconds: float | None
    failures: int | None
    last_outcome: str | None
    last_status_code: int | None
    disabled_seconds: float | None
    disabled_why: str | None
    alike: int
    waiting: int

    @property
    def state(self) -> str:
        """Return its state by the list's own filter."""
        return "failing" if self.disabled_seconds is None else "disabled"

    @property
    def sentence(self) -> str:
        """Describe its failure."""
        host = URL(self.url).host or "?"
        who = f"{self.name} ({host})" if self.name else host
        if self.disabled_seconds is not None:
            return (
                f"{who} was disabled {duration(self.disabled_seconds)} ago ({self.disabled_why});"
                f" {self.waiting:,} notifications wait"
            )
        answer = outcome_words(self.last_outcome, self.last_status_code)
        return (
            f"{who} has taken nothing for {duration(self.failing_seconds or 0)} ({self.failures}"
            f" tries failed, the last: {answer}); {self.waiting:,} notifications wait"
        )


def unsent_findings(unsent: Sequence[Unsent]) -> Iterator[Finding]:
    """Name those that are disabled, and those of which every try fails."""
    for state, group in groupby(unsent, key=lambda one: one.state):
        worst, *others = group
        if worst.alike > NAMED_MAX:
            text = f"{worst.alike:,} are {state}; the first of them: {worst.sentence}"
            yield replace(_SUBSCRIBER, about="subscriptions", text=text, subscription_state=state)
        else:
            yield from (_about(one.subscription_id, one.sentence) for one in (worst, *others))


def slow_findings(
    late: Sequence[SubscriptionGauges], unsent_ids: Collection[str], *, cause: str | None
) -> Iterator[Finding]:
    """Name subscriptions that fall behind. `cause`: the page of a cause shared by all."""
    slow = sorted(
        (each for each in late if each.subscription_id not in unsent_ids),
        key=lambda each: -each.oldest_ready_seconds,
    )
    shown = slow if len(slow) <= NAMED_MAX else slow[:1]
    why = "nothing is sent" if cause else "it is slow, or limited"
    for each in shown:
        text = (
            f"{each.waiting:,} notifications wait, the first for"
            f" {duration(each.oldest_ready_seconds)}: {why}"
        )
        yield replace(_about(each.subscription_id, text), cause=cause)
    if len(slow) > len(shown):
        text = (
            f"so do {len(slow) - len(shown)} more at least:"
            f" {'nothing is sent' if cause else 'they are slow, or limited'}"
        )
        yield replace(_SUBSCRIBER, about="subscriptions", text=text, cause=cause)


def _about(subscription_id: str, text: str) -> Finding:
    return replace(
        _SUBSCRIBER,
        about=f"subscription {subscription_id[:8]}",
        text=text,
        subscription_id=subscription_id,
    )
