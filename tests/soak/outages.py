"""Figures of a story whose database goes away while carriers push once: ACKs, and last notifications."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.bench.report import percentile
from tests.soak.carriers import Try
from tests.soak.story import Story
from tests.soak.watch import Disturbance

AWAY: Final = "the database away"
OPENING_SECONDS: Final = 1.0
"""From the loss of the database: within it each ingress notices, and its breaker opens."""
_NOTIFIED: Final = """
SELECT n.webhook_id, extract(epoch FROM max(e.received_at))::float8
FROM statesvc.notification n
JOIN statesvc.transition t ON t.shipment_id = n.shipment_id AND t.sequence = n.sequence
JOIN statesvc.event e ON e.shipment_id = t.shipment_id AND e.batch_id = t.batch_id
GROUP BY n.webhook_id
"""
_SETTLED: Final = """
SELECT extract(epoch FROM received_at)::float8, extract(epoch FROM settled_at)::float8 FROM statesvc.message
"""


async def note_outages(story: Story) -> None:
    """Add the figures to the notes of a story that has ended."""
    outages = [one for one in story.watch.disturbances if one.what == AWAY]
    tries = story.carriers.sent.tries
    rate = len(tries) / (tries[-1].began - tries[0].began)
    refused = sum(one.status != 200 for one in tries)
    story.notes += [
        f"{len(outages)} outages, {rate:.1f} pushes/s made, {refused:,} refused",
        acks_between("undisturbed", tries, [(one.began - 10, one.began) for one in outages]),
        acks_between(
            "in the first second",
            tries,
            [(one.began, one.began + OPENING_SECONDS) for one in outages],
        ),
        acks_between(
            "from then to the return",
            tries,
            [(one.began + OPENING_SECONDS, one.ended) for one in outages],
        ),
        acks_between(
            "in the 15 s after the return", tries, [(one.ended, one.ended + 15) for one in outages]
        ),
    ]
    settled: list[Any] = await story.execute(_SETTLED)
    notified = [
        (received_at, story.subscriber.arrived[str(webhook_id)])
        for webhook_id, received_at in await story.execute(_NOTIFIED)
    ]
    for what, done in (("settled", settled), ("notified", notified)):
        seconds = _last(outages, done)
        story.notes.append(f"received before a return, all {what} after it in s: {seconds}")


def acks_between(when: str, tries: Iterable[Try], windows: Sequence[tuple[float, float]]) -> str:
    """Describe the ACKs of pushes that began in the windows."""
    ordered = sorted(
        one.seconds
        for one in tries
        if one.status == 200 and any(begins <= one.began < ends for begins, ends in windows)
    )
    if not ordered:
        return f"ACK {when}: none"
    return (
        f"ACK {when}: {len(ordered):,}, p50 {percentile(ordered, 0.5) * 1e3:.0f} ms, p99"
        f" {percentile(ordered, 0.99) * 1e3:.0f} ms, longest {ordered[-1] * 1e3:.0f} ms"
    )


def _last(outages: Iterable[Disturbance], done: Iterable[tuple[Any, Any]]) -> str:
    """Return for each outage the seconds from the return to the last one that was received before it."""
    to_wall = time.time() - time.monotonic()
    ordered = sorted(done)
    found = []
    for outage in outages:
        returned = outage.ended + to_wall
        last = max(
            (at for received_at, at in ordered if received_at <= returned and at > returned),
            default=returned,
        )
        found.append(f"{last - returned:.1f}")
    return ", ".join(found)
