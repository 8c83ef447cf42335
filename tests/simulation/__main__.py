"""`python -m tests.simulation`: what the limiter makes of receivers in trouble, as a table. Hours of virtual time in minutes."""

import sys

from tests.simulation.scenarios import SCENARIOS, SECONDS, adaptive, best_fixed, seconds_to_recover

HEAD = (
    "receiver",
    "peak in flight",
    "told/s in trouble",
    "told/s in all",
    "best fixed limit",
    "told/s by it",
    "refused %",
    "recovers in s",
)


def row(place: int) -> tuple[str, ...]:
    scenario = SCENARIOS[place]
    subscriber = adaptive(scenario)
    limit, throughput = best_fixed(scenario)
    answers = sum(subscriber.statuses.values())
    return (
        scenario.name,
        str(subscriber.peak),
        f"{subscriber.throughput(scenario.begins, scenario.ends):.0f}" if scenario.begins else "-",
        f"{subscriber.throughput(0, SECONDS):.0f}",
        str(limit),
        f"{throughput:.0f}",
        f"{100 * (answers - subscriber.statuses[204]) / answers:.1f}",
        f"{seconds_to_recover(subscriber, scenario):.1f}",
    )


def main() -> None:
    write = sys.stdout.write
    write("| " + " | ".join(HEAD) + " |\n|---" + "|---:" * (len(HEAD) - 1) + "|\n")
    for place in range(len(SCENARIOS)):
        write("| " + " | ".join(row(place)) + " |\n")


main()
