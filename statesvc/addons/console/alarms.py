"""Alarms that need a human, a row for each thing to do: what follows from a cause, or is the same for another carrier, is below it.

Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from statesvc.health.finding import Finding, Urgency

_ALIKE: Final = frozenset(
    {"Lag", "CarrierSilent", "DeadLettersGrow", "UnknownCodes", "FormatChanged", "WorkersOutdated"}
)
"""Pages of findings that are one thing to do, however many carriers or causes they name."""
_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(slots=True)
class Alarm:
    """One thing to do. `others`: what else is of the same cause, or follows from it."""

    first: Finding
    others: list[Finding] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Label that says when to act."""
        return self.first.urgency.label.upper()


def alarms_of(findings: Sequence[Finding]) -> list[Alarm]:
    """Group them, and keep their order: the worst first, what follows from another behind it."""
    alarms: list[Alarm] = []
    for finding in findings:
        of = next((alarm for alarm in alarms if _belongs(finding, alarm.first)), None)
        if of is None:
            alarms.append(Alarm(finding))
        else:
            of.others.append(finding)
    return alarms


def _belongs(finding: Finding, first: Finding) -> bool:
    if finding.cause is not None:
        return finding.cause == first.page
    return finding.page in _ALIKE and (finding.page, finding.urgency) == (first.page, first.urgency)


def headline(alarms: Sequence[Alarm]) -> str:
    """Return how much there is to do, in a sentence."""
    now = sum(alarm.first.urgency is Urgency.NOW for alarm in alarms)
    today = sum(alarm.first.urgency is Urgency.HUMAN for alarm in alarms)
    if not now and not today:
        return "Nothing needs you"
    sentence = ", ".join(_parts(now, today))
    return sentence[:1].upper() + sentence[1:]


def _parts(now: int, today: int) -> Iterator[str]:
    if now:
        yield f"{_counted(now)} need{'s' if now == 1 else ''} you now"
    if today:
        yield (
            f"{_word(today)} today"
            if now
            else f"{_counted(today)} need{'s' if today == 1 else ''} you today"
        )


def _counted(count: int) -> str:
    return f"{_word(count)} thing{'' if count == 1 else 's'}"


def _word(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"
