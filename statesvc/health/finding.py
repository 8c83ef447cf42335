"""Findings of checks: one sentence about one thing.

Doctor, status and the console say it alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Urgency(StrEnum):
    NOW = "now"
    """A promise is broken, or will be soon; or the installation cannot work."""
    HUMAN = "human"
    """Waits for a decision that the service cannot take; or works with a weakness."""
    NOTE = "note"
    """Worth knowing; no action is needed."""
    OK = "ok"
    """All is well. Of checks that say so; `GET /v1/status` has none."""

    @property
    def label(self) -> str:
        """The urgency in words, the same on the command line and in the console."""
        return {"now": "NOW", "human": "TODAY"}.get(self.value, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence. `page`: of docs/runbook, without `.md`; None: no action is needed.

    `cause`: the page of the finding that causes this one. `of_subscriptions`: the subscription
    concerned, or the state that all have.
    """

    urgency: Urgency
    about: str
    text: str
    page: str | None = None
    cause: str | None = None
    subscription_id: str | None = None
    subscription_state: str | None = None


def ok(about: str, text: str) -> Finding:
    return Finding(urgency=Urgency.OK, about=about, text=text)


def warn(about: str, text: str) -> Finding:
    """Report a working part with a weakness that an operator should know."""
    return Finding(urgency=Urgency.HUMAN, about=about, text=text)


def fail(about: str, text: str) -> Finding:
    """Report a part that must be repaired."""
    return Finding(urgency=Urgency.NOW, about=about, text=text)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by urgency, those with a page first; a consequence follows its cause."""
    order = list(Urgency)
    found = sorted(
        findings, key=lambda finding: (order.index(finding.urgency), finding.page is None)
    )
    causes = {finding.page for finding in found if finding.cause is None}
    ranked = [
        finding if finding.cause in causes else replace(finding, cause=None) for finding in found
    ]
    effects = [finding for finding in ranked if finding.cause is not None]
    listed: list[Finding] = []
    led: set[str | None] = set()
    for finding in ranked:
        if finding in effects:
            continue
        listed.append(finding)
        if finding.page not in led:
            led.add(finding.page)
            listed += [effect for effect in effects if effect.cause == finding.page]
    return listed
