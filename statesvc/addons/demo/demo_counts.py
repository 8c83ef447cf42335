"""Counts of a demo: its pushes, and the notifications of its subscriber."""

from collections import Counter
from dataclasses import dataclass, field

from statesvc.addons.demo.traffic import Behaviour


@dataclass(slots=True)
class DemoCounts:
    behaviours: Counter[Behaviour] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    verified: int = 0
    forged: int = 0

    def summary(self) -> str:
        parts = [f"{self.behaviours.total()} pushed", f"{self.acknowledged} acknowledged"]
        odd = (each for each in Behaviour if each is not Behaviour.PLAIN and self.behaviours[each])
        parts += [f"{self.behaviours[each]} {each.value}" for each in odd]
        parts += [
            f"{count} refused with {status}" for status, count in sorted(self.refused.items())
        ]
        if self.unanswered:
            parts.append(f"{self.unanswered} unanswered")
        parts.append(f"{self.verified} notifications, signature right")
        if self.forged:
            parts.append(f"{self.forged} with a wrong signature")
        return " | ".join(parts)
