"""The table of metric and attribute names. They are an API: dashboards and alert rules are written against it.

Here stands what is recorded where it happens; what is read at each scrape stands in `gauges`.
No attribute may be without a small closed set of values (shipments, numbers, URLs); only the 20 subscriptions with the largest backlog
are labelled.
`docs/metrics.md` is made of this table (`python -m tests.metrics_page`). The Prometheus form adds `_total` to counters and the unit.
"""

from typing import Final

from statesvc.telemetry import gauges
from statesvc.telemetry.metric import (
    LAG_BUCKETS,
    LATENCY_BUCKETS,
    Attribute,
    Metric,
    counter,
    histogram,
)

INGEST_ACK_DURATION: Final = histogram(
    "statesvc.ingest.ack.duration",
    "s",
    "From the request's head to the answer. outcome: accepted, duplicate, rejected, error.",
    Attribute.CARRIER,
    Attribute.OUTCOME,
    buckets=LATENCY_BUCKETS,
)
INGEST_DUPLICATES: Final = counter(
    "statesvc.ingest.duplicates",
    "{message}",
    "Byte-identical retries that made no new work: over the ACKs of a carrier, the rate at which it retries.",
    Attribute.CARRIER,
)
REFUSALS: Final = counter(
    "statesvc.refusals",
    "{refusal}",
    "What a process refused to take. cause: head_timeout (half a request), connections, connections_of_address (too many), "
    "the code of a webhook's problem (overloaded, bad_signature, too_large, ...), rate, concurrency, computing (an API key "
    "asks too much).",
    Attribute.CAUSE,
)
REQUEST_WARNINGS: Final = counter(
    "statesvc.request.warnings",
    "{warning}",
    "Unknown members of POST /v1/events and unknown words of filters that were taken with a warning: 0.3 refuses them.",
)
MESSAGES_CLAIMED: Final = counter(
    "statesvc.messages.claimed", "{message}", "Messages leased to this worker.", Attribute.CARRIER
)
MESSAGE_ATTEMPTS: Final = counter(
    "statesvc.messages.attempts",
    "{attempt}",
    "Attempts at messages by their number: 1, 2, 3, 4, 5, more. All but 1 follow a failure, a death or a lease that ran out.",
    Attribute.CARRIER,
    Attribute.ATTEMPT,
)
MESSAGES_SETTLED: Final = counter(
    "statesvc.messages.settled",
    "{message}",
    "Messages with a verdict. outcome: applied, empty, rejected (nothing was read of it, and something is there).",
    Attribute.CARRIER,
    Attribute.OUTCOME,
)
MESSAGES_RESCUED: Final = counter(
    "statesvc.messages.rescued",
    "{message}",
    "Messages that this worker took over because another's lease on them had ended.",
    Attribute.CARRIER,
)
MESSAGES_RETRIED: Final = counter(
    "statesvc.messages.retried",
    "{message}",
    "Messages given back after a transient failure.",
    Attribute.CARRIER,
)
MESSAGES_POSTPONED: Final = counter(
    "statesvc.messages.postponed",
    "{message}",
    "Messages given back uncharged because another transaction had locked a shipment that they name.",
    Attribute.CARRIER,
)
MESSAGES_FALLBACK: Final = counter(
    "statesvc.messages.fallback",
    "{message}",
    "Messages that this worker read because the fleet whose share they are did not lease them in time (docs/strangle.md).",
    Attribute.CARRIER,
)
MESSAGES_BURIED: Final = counter(
    "statesvc.messages.buried",
    "{message}",
    "Messages that became dead letters.",
    Attribute.CARRIER,
    Attribute.CAUSE,
)
EVENT_TIMES: Final = counter(
    "statesvc.event.times",
    "{event}",
    "Appended events by where the offset of their time comes from (docs/times.md). assumed_utc: nothing says it.",
    Attribute.CARRIER,
    Attribute.TZ_SOURCE,
)
EVENTS: Final = counter(
    "statesvc.events",
    "{event}",
    "Carrier events by the verdict of their append: appended, duplicate, conflict.",
    Attribute.CARRIER,
    Attribute.VERDICT,
)
NORMALIZE_FAILURES: Final = counter(
    "statesvc.normalize.failures",
    "{failure}",
    "Messages that no normalizer could read, and codes that no mapping knows.",
    Attribute.CARRIER,
    Attribute.CAUSE,
)
STAGE_DURATION: Final = histogram(
    "statesvc.batch.stage.duration",
    "s",
    "How long one stage took for one batch: claim, normalize, append, project, settle.",
    Attribute.STAGE,
    buckets=LATENCY_BUCKETS,
)
PICKUP_LAG: Final = histogram(
    "statesvc.messages.pickup.lag",
    "s",
    "From the ACK of a message to its first claim.",
    Attribute.CARRIER,
    buckets=LAG_BUCKETS,
)
APPLIED_LAG: Final = histogram(
    "statesvc.messages.applied.lag",
    "s",
    "From the ACK of a message to the commit that applied it. The promise is less than 120 s.",
    Attribute.CARRIER,
    buckets=LAG_BUCKETS,
)
EVENTS_UNMAPPED: Final = counter(
    "statesvc.events.unmapped",
    "{event}",
    "Appended events whose code no table knows: they are in the log, and move no status.",
    Attribute.CARRIER,
)
TRANSITIONS: Final = counter(
    "statesvc.transitions",
    "{transition}",
    "Changes of a shipment's status, by the status that it took.",
    Attribute.CARRIER,
    Attribute.STATUS,
)
MOVES_CONTRADICTED: Final = counter(
    "statesvc.moves.contradicted",
    "{event}",
    "Illegal, backward or surprising moves: appended and marked, by the flag that they raised.",
    Attribute.CARRIER,
    Attribute.FLAG,
)
NOTIFICATIONS_WRITTEN: Final = counter(
    "statesvc.notifications.written", "{notification}", "Notifications put into the outbox."
)
NOTIFICATIONS_COALESCED: Final = counter(
    "statesvc.notifications.coalesced",
    "{notification}",
    "Notifications left out because too much waited; a later one of the same shipment says so.",
)
NOTIFICATION_ATTEMPTS: Final = counter(
    "statesvc.notifications.attempts",
    "{attempt}",
    "Tries at a notification by their outcome.",
    Attribute.OUTCOME,
)
FIRST_ATTEMPT_LAG: Final = histogram(
    "statesvc.notifications.first_attempt.lag",
    "s",
    "From the change to the first try to notify of it. state: ready, or limited where the subscription had no free permit, "
    "asked for a pause or has a contracted rate: then the wait is its own.",
    Attribute.STATE,
    buckets=LAG_BUCKETS,
)
DELIVERED_LAG: Final = histogram(
    "statesvc.notifications.delivered.lag",
    "s",
    "From the ACK of the message to the subscriber's own ACK of what it caused. Replays are left out.",
    buckets=LAG_BUCKETS,
)
DELIVERY_DURATION: Final = histogram(
    "statesvc.notifications.delivery.duration",
    "s",
    "How long one try took, connection included.",
    Attribute.OUTCOME,
    buckets=LATENCY_BUCKETS,
)
NOTICES: Final = counter(
    "statesvc.notices",
    "{notice}",
    "Notices to the operator. type: subscription.failing, subscription.disabled, subscription.recovered, rollout.turned_back.",
    Attribute.TYPE,
)
CLAIMS: Final = counter(
    "statesvc.claims",
    "{claim}",
    "Claims by queue (inbox, outbox) and by how much they found: empty, partial, full.",
    Attribute.QUEUE,
    Attribute.FILL,
)
ARCHIVED_BODIES: Final = counter(
    "statesvc.archive.bodies",
    "{body}",
    "Bodies of whole days that were written to their archive and compared with it.",
)
ARCHIVE_FAILURES: Final = counter(
    "statesvc.archive.failures",
    "{failure}",
    "Days that could not be archived, passes that failed, files found missing or altered. `statesvc doctor` says which.",
)
SEALED_ENTRIES: Final = counter(
    "statesvc.sealer.entries", "{entry}", "Entries of the log that this process sealed."
)
SEALING_LAG: Final = histogram(
    "statesvc.sealer.lag",
    "s",
    "From the recording of the oldest entry of a pass to the pass.",
    buckets=LAG_BUCKETS,
)
DUE_TIMES_REPAIRED: Final = counter(
    "statesvc.due_times.repaired",
    "{row}",
    "What was due at a time that no rule explains, and was taken as due: the database's clock was ahead.",
    Attribute.QUEUE,
)
OBSERVATIONS: Final = counter(
    "statesvc.observations",
    "{observation}",
    "What did not happen to shipments as it should have. type: stalled, not_picked_up, overdue, delivery_missed, pickup_expiring, "
    "never_heard.",
    Attribute.CARRIER,
    Attribute.TYPE,
)
CHECKPOINT_STAMPS: Final = counter(
    "statesvc.checkpoint.stamps",
    "{stamp}",
    "Time stamps of checkpoints that were asked of the authority: stamped, failed (its answer is in the log).",
    Attribute.OUTCOME,
)
CHECKPOINT_PUBLICATIONS: Final = counter(
    "statesvc.checkpoint.publications",
    "{checkpoint}",
    "Checkpoints to be stored outside (STATESVC_CHECKPOINT_PUBLISH): published, failed, contradicted (another one is there).",
    Attribute.OUTCOME,
)
STREAM_TRANSITIONS: Final = counter(
    "statesvc.stream.transitions", "{transition}", "Transitions sent to clients of the stream."
)
STREAM_ENDS: Final = counter(
    "statesvc.stream.ends",
    "{stream}",
    "Streams that ended. cause: closed (by the client), slow (took nothing for too long), shed (the process is under "
    "pressure), stopping, revoked (its key), failed (the log could not be read), "
    "forked (the log began a new epoch).",
    Attribute.CAUSE,
)
API_PROBLEMS: Final = counter(
    "statesvc.http.problems",
    "{call}",
    "Calls that were answered with a problem, webhooks included, by its code: cursor_lost (a reader of entries that a restore took back), "
    "not_found, internal_error, ...",
    Attribute.CAUSE,
)
LOOP_LAG: Final = histogram(
    "statesvc.loop.lag",
    "s",
    "How late a timer of the event loop fires: what everything else in the process waits for it.",
    buckets=LATENCY_BUCKETS,
)

METRICS: Final[tuple[Metric, ...]] = tuple(
    value for value in [*globals().values(), *vars(gauges).values()] if isinstance(value, Metric)
)
