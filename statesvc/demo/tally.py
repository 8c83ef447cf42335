"""What the sample carriers and the sample subscriber have seen so far, and how it reads in one line."""

from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import quantiles

from statesvc.demo.traffic import Behaviour

RECENT = 2000


@dataclass(slots=True)
class Tally:
    """Counts since the start; latencies of the most recent requests, in milliseconds."""

    behaviours: Counter[Behaviour] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    verified: int = 0
    forged: int = 0
    ack_milliseconds: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def line(self) -> str:
        """One line for people."""
        sent = sum(self.behaviours.values())
        parts = [f"{sent} pushed", f"{self.acknowledged} acknowledged{self._latency()}"]
        odd = [f"{self.behaviours[each]} {each.value}" for each in Behaviour if each is not Behaviour.PLAIN and self.behaviours[each]]
        if odd:
            parts.append(", ".join(odd))
        parts += [f"{count} refused with {status}" for status, count in sorted(self.refused.items())]
        if self.unanswered:
            parts.append(f"{self.unanswered} unanswered")
        parts.append(f"{self.verified} notifications, signature right")
        if self.forged:
            parts.append(f"{self.forged} with a wrong signature")
        return " | ".join(parts)

    def _latency(self) -> str:
        if len(self.ack_milliseconds) < 2:
            return ""
        cuts = quantiles(self.ack_milliseconds, n=100)
        return f" (p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms)"
