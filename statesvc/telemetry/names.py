"""The table of metric and attribute names, an API for dashboards and alert rules.

It holds metrics that are recorded where they occur; those read at each scrape are in `gauges`.
Every attribute has a small closed set of values (no shipments, numbers, URLs); only the 20
subscriptions with the largest backlog are labelled. `docs/metrics.md` is made of this table
(`python -m tests.metrics_page`). The Prometheus form adds `_total` to counters and the unit.
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
    "Time from the request head to the answer. outcome: accepted, duplicate, rejected, error.",
    Attribute.CARRIER,
    Attribute.OUTCOME,
    buckets=LATENCY_BUCKETS,
)
INGEST_DUPLICATES: Final = counter(
    "statesvc.ingest.duplicates",
    "{message}",
    "Byte-identical retries; divided by the ACKs, a carrier's retry rate.",
    Attribute.CARRIER,
)
INGEST_SPOOLED: Final = counter(
    "statesvc.ingest.spooled",
    "{message}",
    "Messages acknowledged once the spool had them, because the database did not answer.",
)
REFUSALS: Final = counter(
    "statesvc.refusals",
    "{refusal}",
    "Refused connections and calls. cause: head_timeout, connections, connections_of_address, a"
    " webhook's problem code (overloaded, bad_signature, ...), rate, concurrency, computing (over a"
    " key's quota).",
    Attribute.CAUSE,
)
REQUEST_WARNINGS: Final = counter(
    "statesvc.request.warnings",
    "{warning}",
    "Unknown members of POST /v1/events and unknown filter words accepted with a warning; 0.3 "
    "refuses them.",
)
MESSAGES_CLAIMED: Final = counter(
    "statesvc.messages.claimed", "{message}", "Messages leased to this worker.", Attribute.CARRIER
)
MESSAGE_ATTEMPTS: Final = counter(
    "statesvc.messages.attempts",
    "{attempt}",
    "Attempts by number: 1, 2, 3, 4, 5, more. Attempts after the first follow a failure, a "
    "death or an expired lease.",
    Attribute.CARRIER,
    Attribute.ATTEMPT,
)
MESSAGES_SETTLED: Final = counter(
    "statesvc.messages.settled",
    "{message}",
    "Messages with a verdict. outcome: applied, empty, rejected (not empty, but without a "
    "readable event).",
    Attribute.CARRIER,
    Attribute.OUTCOME,
)
MESSAGES_RESCUED: Final = counter(
    "statesvc.messages.rescued",
    "{message}",
    "Messages taken over from an expired lease.",
    Attribute.CARRIER,
)
MESSAGES_RETRIED: Final = counter(
    "statesvc.messages.retried",
    "{message}",
    "Messages returned after a transient failure.",
    Attribute.CARRIER,
)
MESSAGES_POSTPONED: Final = counter(
    "statesvc.messages.postponed",
    "{message}",
    "Messages returned uncharged because a shipment was locked.",
    Attribute.CARRIER,
)
MESSAGES_FALLBACK: Final = counter(
    "statesvc.messages.fallback",
    "{message}",
    "Messages read by this worker because the assigned fleet did not lease them in time "
    "(docs/strangle.md).",
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
    ("Appended events by the source of their time offset (docs/times.md). assumed_utc: no source."),
    Attribute.CARRIER,
    Attribute.TZ_SOURCE,
)
EVENTS: Final = counter(
    "statesvc.events",
    "{event}",
    "Carrier events by verdict: appended, duplicate, conflict.",
    Attribute.CARRIER,
    Attribute.VERDICT,
)
NORMALIZE_FAILURES: Final = counter(
    "statesvc.normalize.failures",
    "{failure}",
    "Unreadable messages and unknown codes.",
    Attribute.CARRIER,
    Attribute.CAUSE,
)
STAGE_DURATION: Final = histogram(
    "statesvc.batch.stage.duration",
    "s",
    "Duration of a stage of a batch: claim, normalize, append, project, settle.",
    Attribute.STAGE,
    buckets=LATENCY_BUCKETS,
)
PICKUP_LAG: Final = histogram(
    "statesvc.messages.pickup.lag",
    "s",
    "Time from a message's ACK to its first claim.",
    Attribute.CARRIER,
    buckets=LAG_BUCKETS,
)
APPLIED_LAG: Final = histogram(
    "statesvc.messages.applied.lag",
    "s",
    "Time from a message's ACK to the commit that applied it. The promise is less than 120 s.",
    Attribute.CARRIER,
    buckets=LAG_BUCKETS,
)
EVENTS_UNMAPPED: Final = counter(
    "statesvc.events.unmapped",
    "{event}",
    "Appended events with an unknown code; they change no status.",
    Attribute.CARRIER,
)
TRANSITIONS: Final = counter(
    "statesvc.transitions",
    "{transition}",
    "Status changes, by new status.",
    Attribute.CARRIER,
    Attribute.STATUS,
)
MOVES_CONTRADICTED: Final = counter(
    "statesvc.moves.contradicted",
    "{event}",
    "Illegal, backward or surprising moves, by the flag raised.",
    Attribute.CARRIER,
    Attribute.FLAG,
)
NOTIFICATIONS_WRITTEN: Final = counter(
    "statesvc.notifications.written", "{notification}", "Notifications put into the outbox."
)
NOTIFICATIONS_COALESCED: Final = counter(
    "statesvc.notifications.coalesced",
    "{notification}",
    "Notifications left out during a backlog; a later notification of the shipment reports "
    "the gap.",
)
NOTIFICATION_ATTEMPTS: Final = counter(
    "statesvc.notifications.attempts",
    "{attempt}",
    "Notification attempts by outcome.",
    Attribute.OUTCOME,
)
FIRST_ATTEMPT_LAG: Final = histogram(
    "statesvc.notifications.first_attempt.lag",
    "s",
    "Time from the change to the first attempt. state: ready, or limited (no free permit, a "
    "requested pause or a contracted rate of the subscription).",
    Attribute.STATE,
    buckets=LAG_BUCKETS,
)
DELIVERED_LAG: Final = histogram(
    "statesvc.notifications.delivered.lag",
    "s",
    "Time from the message's ACK to the subscriber's ACK, without replays.",
    buckets=LAG_BUCKETS,
)
DELIVERY_DURATION: Final = histogram(
    "statesvc.notifications.delivery.duration",
    "s",
    "Duration of an attempt, connection included.",
    Attribute.OUTCOME,
    buckets=LATENCY_BUCKETS,
)
NOTICES: Final = counter(
    "statesvc.notices",
    "{notice}",
    "Notices to the operator. type: subscription.failing, subscription.disabled, "
    "subscription.recovered, rollout.turned_back.",
    Attribute.TYPE,
)
CLAIMS: Final = counter(
    "statesvc.claims",
    "{claim}",
    "Claims by queue (inbox, outbox) and fill: empty, partial, full.",
    Attribute.QUEUE,
    Attribute.FILL,
)
ARCHIVED_BODIES: Final = counter(
    "statesvc.archive.bodies",
    "{body}",
    "Bodies archived and verified, in whole days.",
)
ARCHIVE_FAILURES: Final = counter(
    "statesvc.archive.failures",
    "{failure}",
    "Days not archived, failed runs, missing or altered files. `statesvc doctor` names them.",
)
SEALED_ENTRIES: Final = counter(
    "statesvc.sealer.entries", "{entry}", "Log entries sealed by this process."
)
SEALING_LAG: Final = histogram(
    "statesvc.sealer.lag",
    "s",
    "Age of the oldest entry of a sealing pass.",
    buckets=LAG_BUCKETS,
)
DUE_TIMES_REPAIRED: Final = counter(
    "statesvc.due_times.repaired",
    "{row}",
    "Rows with an impossible due time, treated as due: the database's clock was ahead.",
    Attribute.QUEUE,
)
OBSERVATIONS: Final = counter(
    "statesvc.observations",
    "{observation}",
    "Missed deadlines of shipments. type: stalled, not_picked_up, overdue, delivery_missed, "
    "pickup_expiring, never_heard.",
    Attribute.CARRIER,
    Attribute.TYPE,
)
CHECKPOINT_STAMPS: Final = counter(
    "statesvc.checkpoint.stamps",
    "{stamp}",
    "Time stamps requested from the authority: stamped, failed (the log has the answer).",
    Attribute.OUTCOME,
)
CHECKPOINT_COSIGNATURES: Final = counter(
    "statesvc.checkpoint.cosignatures",
    "{cosignature}",
    "Cosignatures requested from witnesses: cosigned, refused, unreachable, invalid "
    "(`statesvc status` has the answer).",
    Attribute.OUTCOME,
)
CHECKPOINT_PUBLICATIONS: Final = counter(
    "statesvc.checkpoint.publications",
    "{checkpoint}",
    "Checkpoints for STATESVC_CHECKPOINT_PUBLISH: published, failed, contradicted (the store "
    "has a different checkpoint).",
    Attribute.OUTCOME,
)
STREAM_TRANSITIONS: Final = counter(
    "statesvc.stream.transitions", "{transition}", "Transitions sent to stream clients."
)
STREAM_ENDS: Final = counter(
    "statesvc.stream.ends",
    "{stream}",
    "Ended streams. cause: closed (by the client), slow (client does not read), shed (process "
    "under pressure), stopping, revoked (key), failed (log unreadable), forked (new epoch).",
    Attribute.CAUSE,
)
API_PROBLEMS: Final = counter(
    "statesvc.http.problems",
    "{call}",
    "Calls answered with a problem, webhooks included, by code: cursor_lost (the reader's "
    "entries were lost in a restore), not_found, internal_error, ...",
    Attribute.CAUSE,
)
LOOP_LAG: Final = histogram(
    "statesvc.loop.lag",
    "s",
    "Delay of timers of the event loop.",
    buckets=LATENCY_BUCKETS,
)

METRICS: Final[tuple[Metric, ...]] = tuple(
    value for value in [*globals().values(), *vars(gauges).values()] if isinstance(value, Metric)
)
