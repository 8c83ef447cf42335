"""Checks of the running processes: silent, dying again and again, missing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from statesvc.api.status_facts import Facts
from statesvc.background.deaths import cause_of_death
from statesvc.background.duration import duration
from statesvc.health.database_sample import PROCESSES, Sample
from statesvc.health.finding import Finding, Urgency

# Deaths within ten minutes from which a role dies again and again.
DEATHS_MIN: Final = 3


_DIED_OF_LATE_SECONDS: Final = 120.0


_LIVES_SECONDS: Final = 30.0


_ROLES: Final = ("worker", "notifier", "sealer")


_TAKES_WEBHOOKS: Final = frozenset({"ingress", "api"})


def _silent(sample: Sample) -> Iterator[Finding]:
    """Yield the processes that missed their heartbeats, each while others of its role may go on."""
    running = dict(sample.processes)
    replaced = Counter(
        (each.role, each.host) for each in sample.running if each.is_silent and each.is_replaced
    )
    for process in (each for each in sample.running if each.is_silent):
        seen = (
            f"{process.role} on {process.host} (process {process.pid}) was last heard of"
            f" {duration(process.seen_seconds_ago)} ago"
        )
        trouble = Finding(
            urgency=Urgency.NOTE,
            about="processes",
            text=f"{seen}, and was started again",
            page="RoleDown",
        )
        if process.is_replaced:
            # the latest stands for all of its role on this machine
            times = replaced.pop((process.role, process.host), 0)
            also = f"; {times} of its role within ten minutes" if times > 1 else ""
            if times:
                yield replace(trouble, text=f"{trouble.text}{also}", page=None)
        elif process.role in _TAKES_WEBHOOKS:
            text = f"{seen}: frozen, killed or cut off; what is sent to it is not answered"
            yield replace(trouble, urgency=Urgency.NOW, text=text)
        elif running.get(process.role):
            yield replace(
                trouble, text=f"{seen}: frozen, killed or cut off; others of its role go on"
            )


def _deaths(sample: Sample) -> Iterator[Finding]:
    """Yield a finding for each role that died on a machine: how often, and the last reason."""
    for died in sample.deaths:
        lives = any(
            each.role == died.role
            and not each.is_silent
            and each.started_seconds_ago >= _LIVES_SECONDS
            for each in sample.running
        )
        if died.times < DEATHS_MIN:
            urgency = Urgency.NOTE
        elif not lives:
            urgency = Urgency.NOW
        else:
            urgency = Urgency.HUMAN if died.seconds_ago <= _DIED_OF_LATE_SECONDS else Urgency.NOTE
        times = "once" if died.times == 1 else f"{died.times:,} times"
        cause = cause_of_death(died.exit_code, out_of_memory=died.out_of_memory)
        alone = "" if lives or died.times < DEATHS_MIN else "; no other of its role lives"
        text = (
            f"{died.role} on {died.host} died {times} within ten minutes, last"
            f" {duration(max(1, died.seconds_ago))} ago ({cause}), and was started again{alone}"
        )
        page = None if urgency is Urgency.NOTE else "RoleDown"
        yield Finding(urgency=urgency, about="processes", text=text, page=page)


def process_findings(facts: Facts) -> Iterator[Finding]:
    if any(finding.page == "AckAvailability" for finding in facts.storage):
        # where nothing is written, nobody can be heard of
        return
    if any(one.about == PROCESSES for one in facts.unread):
        return
    yield from _silent(facts.sample)
    yield from _deaths(facts.sample)
    dying = {each.role for each in facts.sample.deaths if each.times >= DEATHS_MIN}
    for role in _ROLES:
        if not facts.runs(role) and role not in dying:
            text = f"no {role} was heard of within half a minute"
            yield Finding(urgency=Urgency.NOW, about="processes", text=text, page="RoleDown")
    if not any(map(facts.runs, _TAKES_WEBHOOKS)):
        yield Finding(
            urgency=Urgency.NOW,
            about="processes",
            text="nothing takes webhooks: neither ingress nor api runs",
            page="RoleDown",
        )
