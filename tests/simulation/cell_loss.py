"""A hundred million messages a day over ten cells, one of which is lost for a while: who notices, for how long, and what never comes.

`python -m tests.simulation.cell_loss` prints it for several lengths of the loss. Minute by minute: a cell takes what it can, the rest is
refused with 503 and sent again as its carrier's documentation says; what a cell has taken it reads at the speed of its processors.
"""

import argparse
import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Final

MINUTES_A_DAY: Final = 1440
SENDING_DAYS: Final = 4
CPU_MS: Final = 0.8
"""Cost of a message to a cell that has as many as it can read: docs/scale.md."""
RETRIES: Final = {
    "AfterShip, 14 times in 68 h": tuple(round(0.5 * (2 ** (n + 1) - 1)) for n in range(14)),
    "Ship24, 20 times in 6 days": tuple(round(12 + n * (6 * 1440 - 12) / 19) for n in range(20)),
    "DHL eCommerce, after 1 h and 6 h": (60, 420),
    "FedEx, 3 times in 15 min": (5, 10, 15),
    "Delhivery, once, at once": (0,),
}
"""Minutes after the first try at which a carrier tries again, as its documentation says; then it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`peak`: the busiest minute against the mean one."""

    messages_a_day: int = 100_000_000
    cells: int = 10
    cores: int = 4
    cpu_ms: float = CPU_MS
    peak: float = 2.5

    @property
    def capacity(self) -> float:
        """Messages a minute that one cell reads with all its cores."""
        return self.cores * 60_000 / self.cpu_ms

    def offered(self, minute: int) -> float:
        """Return fresh messages of this minute to one cell: a day's wave that is highest at 12:00."""
        mean = self.messages_a_day / self.cells / MINUTES_A_DAY
        wave = (1 - math.cos(2 * math.pi * (minute % MINUTES_A_DAY) / MINUTES_A_DAY)) / 2
        return mean * self.peak * math.pow(wave, _sharpness(self.peak))


@cache
def _sharpness(peak: float) -> float:
    """Return the power of the wave whose mean is 1 / `peak` of its height."""
    low, high = 0.1, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = (
            sum(
                ((1 - math.cos(2 * math.pi * (step + 0.5) / 200)) / 2) ** middle
                for step in range(200)
            )
            / 200
        )
        low, high = (middle, high) if mean > 1 / peak else (low, middle)
    return low


@dataclass(slots=True, kw_only=True)
class CellLoss:
    """Loss by one carrier's habit, in messages. `late`: taken after the first try."""

    sent: float = 0.0
    taken: float = 0.0
    late: float = 0.0
    lost: float = 0.0
    lag_minutes: float = 0.0
    """The longest that a message waited after it was taken."""
    waiting: dict[int, dict[int, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )


def lose_cell(
    fleet: Fleet,
    retries: tuple[int, ...],
    *,
    minutes: float,
    start: int = MINUTES_A_DAY + 700,
    days: int = 11,
) -> CellLoss:
    """Simulate the lost cell, all of whose carriers try again like this.

    It goes at `start`, shortly before the second day's busiest minute.
    """
    loss, backlog = CellLoss(), 0.0
    back = start + minutes
    for minute in range(days * MINUTES_A_DAY):
        # the share of this minute in which the cell answers
        up = 1.0 - max(0.0, min(minute + 1, back) - max(minute, start))
        arriving = loss.waiting.pop(minute, {})
        if minute < SENDING_DAYS * MINUTES_A_DAY:
            fresh = fleet.offered(minute)
            arriving[0] = arriving.get(0, 0.0) + fresh
            loss.sent += fresh
        taken = 0.0
        for attempt, count in sorted(arriving.items()):
            accepted, refused = count * up, count * (1 - up)
            taken += accepted
            loss.late += accepted if attempt else 0.0
            _try_again(loss, retries, minute, attempt, refused)
        loss.taken += taken
        backlog = max(0.0, backlog + taken - fleet.capacity * up)
        loss.lag_minutes = max(loss.lag_minutes, backlog / fleet.capacity)
    return loss


def _try_again(
    loss: CellLoss, retries: tuple[int, ...], minute: int, attempt: int, refused: float
) -> None:
    if not refused:
        return
    if attempt >= len(retries):
        loss.lost += refused
        return
    before = retries[attempt - 1] if attempt else 0
    wait = retries[attempt] - before
    if wait == 0:
        # at once: within the same outage
        _try_again(loss, retries, minute, attempt + 1, refused)
    else:
        loss.waiting[minute + wait][attempt + 1] += refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument(
        "--cpu-ms",
        type=float,
        default=CPU_MS,
        help="processor milliseconds a message (docs/scale.md)",
    )
    options = parser.parse_args()
    fleet = Fleet(cells=options.cells, cores=options.cores, cpu_ms=options.cpu_ms)
    busiest = fleet.offered(MINUTES_A_DAY // 2) / 60
    sys.stdout.write(
        f"{fleet.messages_a_day:,} messages a day, {fleet.cells} cells of {fleet.cores} cores; one takes {busiest:,.0f}/s at the busiest "
        f"minute and can read {fleet.capacity / 60:,.0f}/s. The other {fleet.cells - 1} cells share nothing with it.\n"
    )
    for label, minutes in (
        ("30 s", 0.5),
        ("5 min", 5),
        ("30 min", 30),
        ("4 h", 240),
        ("24 h", 1440),
    ):
        for habit, retries in RETRIES.items():
            loss = lose_cell(fleet, retries, minutes=minutes)
            sys.stdout.write(
                f"  lost for {label:6} {habit:34} late {loss.late:12,.0f}  never taken {loss.lost:12,.0f}  "
                f"lag at most {loss.lag_minutes:6.1f} min\n"
            )


if __name__ == "__main__":
    main()
