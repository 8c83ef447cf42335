"""Counts of a batch for the metrics."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from events.vocabulary import Kind
from statesvc.append.append_batch import AppendBatch
from statesvc.queue.claim import Message
from statesvc.reading.read_message import Read
from statesvc.telemetry.metrics import Telemetry

# Attempts beyond this number share a label.
_ATTEMPTS_COUNTED: Final = 5


def count_attempts(telemetry: Telemetry, messages: Sequence[Message]) -> None:
    """Count the messages as they are claimed."""
    numbers = Counter(
        (message.carrier_id, message.attempts if message.attempts <= _ATTEMPTS_COUNTED else "more")
        for message in messages
    )
    for (carrier_id, attempt), count in numbers.items():
        telemetry.begin_carrier(carrier_id)
        telemetry.message_attempts.add(count, {"carrier": carrier_id, "attempt": str(attempt)})
    for carrier_id, count in Counter(
        message.carrier_id for message in messages if message.fallback_for is not None
    ).items():
        telemetry.messages_fallback.add(count, {"carrier": carrier_id})


def count_appended(telemetry: Telemetry, batch: AppendBatch) -> None:
    """Count appended entries, after the commit."""
    for (carrier_id, verdict), count in batch.verdicts_by_carrier().items():
        telemetry.events.add(count, {"carrier": carrier_id, "verdict": verdict.value})
    for (carrier_id, source), count in batch.time_sources_by_carrier().items():
        telemetry.event_times.add(count, {"carrier": carrier_id, "tz_source": source.value})
    for (carrier_id, outcome), count in Counter(
        (read.carrier_id, _outcome(read)) for read in batch.reads.values()
    ).items():
        telemetry.messages_settled.add(count, {"carrier": carrier_id, "outcome": outcome})
    now = datetime.now(UTC)
    for read in batch.reads.values():
        telemetry.applied_lag.record(
            max(0.0, (now - read.source.received_at).total_seconds()), {"carrier": read.carrier_id}
        )
    unmapped = Counter(
        row.proposal.event.carrier_id
        for row in batch.events
        if row.proposal.event.kind is Kind.UNMAPPED
    )
    for carrier_id, count in unmapped.items():
        telemetry.events_unmapped.add(count, {"carrier": carrier_id})
    moves = Counter(
        (c.row.proposal.event.carrier_id, c.to_status) for c in batch.changes if c.is_transition
    )
    for (carrier_id, status), count in moves.items():
        telemetry.transitions.add(count, {"carrier": carrier_id, "status": status})
    for (carrier_id, flag), count in batch.projection.raised.items():
        telemetry.moves_contradicted.add(count, {"carrier": carrier_id, "flag": flag})
    if batch.notifications:
        telemetry.notifications_written.add(batch.notifications)


def _outcome(read: Read) -> str:
    if read.events:
        return "applied"
    return "rejected" if read.rejections else "empty"
