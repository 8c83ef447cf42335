"""`python -m tests.simulation [FOLDER]`: what the limiter makes of receivers in trouble, as a
table.

Hours of virtual time in minutes. FOLDER holds what real runs left there (`STATESVC_SOAK_PLOTS`):
their figures stand beside.
"""

import sys
from pathlib import Path

from tests.simulation.figures import HEAD, Figures, rows
from tests.simulation.scenarios import (
    SCENARIOS,
    SECONDS,
    Scenario,
    adaptive,
    best_fixed,
    seconds_to_recover,
)


def simulated(scenario: Scenario) -> Figures:
    """Simulate one run with the real limiter in virtual time."""
    subscriber = adaptive(scenario)
    answers = sum(subscriber.statuses.values())
    return Figures(
        receiver=scenario.name,
        peak=subscriber.peak,
        in_trouble=subscriber.throughput(scenario.begins, scenario.ends)
        if scenario.begins
        else None,
        in_all=subscriber.throughput(0, SECONDS),
        refused_share=(answers - subscriber.statuses[204]) / answers,
        recovers_seconds=seconds_to_recover(subscriber, scenario),
    )


def row(scenario: Scenario, real: Figures | None) -> list[str]:
    """Return the figures, what the best fixed limit would have, and what a real run did."""
    limit, throughput = best_fixed(scenario)
    name, *cells = simulated(scenario).cells()
    if real is not None:
        cells = [f"{cell} / {other}" for cell, other in zip(cells, real.cells()[1:], strict=True)]
    return [name, *cells, str(limit), f"{throughput:.0f}"]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    found = (
        []
        if folder is None
        else [Figures.from_json(path.read_text("utf-8")) for path in folder.glob("*.json")]
    )
    reals = {real.receiver: real for real in found}
    head = (*HEAD, "best fixed limit", "sent/s by it")
    sys.stdout.write(
        rows(head, (row(scenario, reals.get(scenario.name)) for scenario in SCENARIOS))
    )


main()
