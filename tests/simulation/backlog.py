"""`python -m tests.simulation.backlog`: after a long hold or outage, what a receiver of 50 a second
is sent of 100,000 that wait.

The first two minutes in virtual time, with the real limiter; from there on nothing changes, and the
rest follows at the same pace.
"""

import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from statesvc.delivery.limiter.permits import Permits
from tests.simulation.happenings import Events
from tests.simulation.notifier import Notifier, Subscriber
from tests.simulation.receivers import Behaviour, Collapsing, RateLimited

WAITING: Final = 100_000
PER_SECOND: Final = 50
SECONDS: Final = 120.0
SETTLED_SECONDS: Final = 20.0
"""From here on its pace is measured."""
RECEIVERS: Final[Mapping[str, Callable[[], Behaviour]]] = MappingProxyType(
    {
        "answers 429 beyond 50/s": lambda: RateLimited(per_second=PER_SECOND),
        "bears 2 at a time, 40 ms each": lambda: Collapsing(capacity=2, seconds=0.04),
    }
)
_ID: Final = UUID(int=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """`most_in_a_second`: requests that began within any second, those that were refused among
    them.
    """

    in_first_second: int
    most_in_a_second: int
    peak: int
    refused_share: float
    per_second: float

    def minutes_for(self, waiting: int) -> float:
        """Return the minutes until all are taken."""
        return waiting / self.per_second / 60


def begin(receiver: Behaviour) -> Begun:
    """Begin with everything waiting at once; return how it begins to be sent."""
    events, subscriber = Events(), Subscriber(receiver)
    subscriber.first = [(0.0, 0)] * WAITING
    Notifier(events, Permits(256), {_ID: subscriber}).wake()
    events.run(SECONDS)
    begun = [at for at, _ in subscriber.started]
    within = [bisect_left(begun, at + 1) - number for number, at in enumerate(begun)]
    return Begun(
        in_first_second=within[0],
        most_in_a_second=max(within),
        peak=subscriber.peak,
        refused_share=1 - subscriber.statuses[204] / subscriber.statuses.total(),
        per_second=subscriber.throughput(SETTLED_SECONDS, SECONDS),
    )


def main() -> None:
    sys.stdout.write(
        "| receiver | requests in the first second | in any second | in flight | refused % |"
        " taken/s | 100,000 take | 25,000 take |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
        " ---: |\n"
    )
    for name, receiver in RECEIVERS.items():
        found = begin(receiver())
        sys.stdout.write(
            f"| {name} | {found.in_first_second} | {found.most_in_a_second} | {found.peak} |"
            f" {100 * found.refused_share:.1f} | {found.per_second:.0f} |"
            f" {found.minutes_for(100_000):.0f} min | {found.minutes_for(25_000):.0f} min |\n"
        )


if __name__ == "__main__":
    main()
