"""The one table of metric, span and attribute names. They are an API: dashboards and alert rules are written against it.

No attribute may be a shipment, a tracking number, a URL or anything else without a small closed set of values. Counters do
not end in `_total` and histograms carry no unit in their names: the Prometheus form adds both (`statesvc_events_total`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Instrument(StrEnum):
    """How a metric is recorded. The observed ones are read by a callback at each scrape."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    OBSERVED_GAUGE = "observed_gauge"
    OBSERVED_COUNTER = "observed_counter"


class Attribute(StrEnum):
    """The closed list of attribute keys."""

    CARRIER = "carrier"
    OUTCOME = "outcome"
    VERDICT = "verdict"
    CAUSE = "cause"
    STAGE = "stage"
    QUEUE = "queue"
    FILL = "fill"
    FLAG = "flag"
    STATUS = "status"
    TYPE = "type"
    POOL = "pool"
    STATE = "state"
    ATTEMPT = "attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One row of the table. `buckets` are upper bounds in `unit`, of a histogram only."""

    name: str
    instrument: Instrument
    unit: str
    description: str
    attributes: tuple[Attribute, ...] = ()
    buckets: tuple[float, ...] = ()


LATENCY_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds. 20 ms and 100 ms are exact bounds: the ACK objectives are read from them without interpolation."""
LAG_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 120.0, 600.0, 3600.0)
"""Seconds. 120 s is the promise of end-to-end lag."""

INGEST_ACK_DURATION: Final = Metric(
    name="statesvc.ingest.ack.duration",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    description="From the request's head to the answer. outcome: accepted, duplicate, rejected, error.",
    attributes=(Attribute.CARRIER, Attribute.OUTCOME),
    buckets=LATENCY_BUCKETS,
)
INGEST_DUPLICATES: Final = Metric(
    name="statesvc.ingest.duplicates",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Byte-identical retries that made no new work: over the ACKs of a carrier, the rate at which it retries.",
    attributes=(Attribute.CARRIER,),
)
REFUSALS: Final = Metric(
    name="statesvc.refusals",
    instrument=Instrument.COUNTER,
    unit="{refusal}",
    description="What a process refused to take. cause: head_timeout (half a request), connections, connections_of_address (too many), the "
    "code of a webhook's problem (overloaded, bad_signature, too_large, ...), rate, concurrency, computing (an API key asks too much).",
    attributes=(Attribute.CAUSE,),
)
MESSAGES_CLAIMED: Final = Metric(
    name="statesvc.messages.claimed",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages leased to this worker.",
    attributes=(Attribute.CARRIER,),
)
MESSAGE_ATTEMPTS: Final = Metric(
    name="statesvc.messages.attempts",
    instrument=Instrument.COUNTER,
    unit="{attempt}",
    description="Attempts at messages by their number: 1, 2, 3, 4, 5, more. All but 1 follow a failure, a death or a lease that ran out.",
    attributes=(Attribute.CARRIER, Attribute.ATTEMPT),
)
MESSAGES_SETTLED: Final = Metric(
    name="statesvc.messages.settled",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages with a verdict. outcome: applied, empty.",
    attributes=(Attribute.CARRIER, Attribute.OUTCOME),
)
MESSAGES_RESCUED: Final = Metric(
    name="statesvc.messages.rescued",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages that this worker took over because another's lease on them had ended.",
    attributes=(Attribute.CARRIER,),
)
MESSAGES_RETRIED: Final = Metric(
    name="statesvc.messages.retried",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages given back after a transient failure.",
    attributes=(Attribute.CARRIER,),
)
MESSAGES_POSTPONED: Final = Metric(
    name="statesvc.messages.postponed",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages given back uncharged because another transaction had locked a shipment that they name.",
    attributes=(Attribute.CARRIER,),
)
MESSAGES_BURIED: Final = Metric(
    name="statesvc.messages.buried",
    instrument=Instrument.COUNTER,
    unit="{message}",
    description="Messages that became dead letters.",
    attributes=(Attribute.CARRIER, Attribute.CAUSE),
)
EVENTS: Final = Metric(
    name="statesvc.events",
    instrument=Instrument.COUNTER,
    unit="{event}",
    description="Carrier events by the verdict of their append: appended, duplicate, conflict.",
    attributes=(Attribute.CARRIER, Attribute.VERDICT),
)
NORMALIZE_FAILURES: Final = Metric(
    name="statesvc.normalize.failures",
    instrument=Instrument.COUNTER,
    unit="{failure}",
    description="Messages that no normalizer could read, and codes that no mapping knows.",
    attributes=(Attribute.CARRIER, Attribute.CAUSE),
)
STAGE_DURATION: Final = Metric(
    name="statesvc.batch.stage.duration",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    description="How long one stage took for one batch: claim, normalize, append, project, settle.",
    attributes=(Attribute.STAGE,),
    buckets=LATENCY_BUCKETS,
)
PICKUP_LAG: Final = Metric(
    name="statesvc.messages.pickup.lag",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    description="From the ACK of a message to its first claim.",
    attributes=(Attribute.CARRIER,),
    buckets=LAG_BUCKETS,
)
TRANSITIONS: Final = Metric(
    name="statesvc.transitions",
    instrument=Instrument.COUNTER,
    unit="{transition}",
    description="Changes of a shipment's status, by the status that it took.",
    attributes=(Attribute.CARRIER, Attribute.STATUS),
)
MOVES_CONTRADICTED: Final = Metric(
    name="statesvc.moves.contradicted",
    instrument=Instrument.COUNTER,
    unit="{event}",
    description="Illegal, backward or surprising moves: appended and marked, by the flag that they raised.",
    attributes=(Attribute.CARRIER, Attribute.FLAG),
)
NOTIFICATIONS_WRITTEN: Final = Metric(
    name="statesvc.notifications.written",
    instrument=Instrument.COUNTER,
    unit="{notification}",
    description="Notifications put into the outbox.",
)
NOTIFICATIONS_COALESCED: Final = Metric(
    name="statesvc.notifications.coalesced",
    instrument=Instrument.COUNTER,
    unit="{notification}",
    description="Notifications left out because too much waited; a later one of the same shipment says so.",
)
NOTIFICATION_ATTEMPTS: Final = Metric(
    name="statesvc.notifications.attempts",
    instrument=Instrument.COUNTER,
    unit="{attempt}",
    description="Tries at a notification by their outcome.",
    attributes=(Attribute.OUTCOME,),
)
DELIVERY_DURATION: Final = Metric(
    name="statesvc.notifications.delivery.duration",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    description="How long one try took, connection included.",
    attributes=(Attribute.OUTCOME,),
    buckets=LATENCY_BUCKETS,
)
DELIVERIES_IN_FLIGHT: Final = Metric(
    name="statesvc.notifications.in_flight",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{attempt}",
    description="Tries that wait for their subscriber now.",
)
BROKER_CONNECTIONS: Final = Metric(
    name="statesvc.notifications.broker_connections",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{connection}",
    description="Connections to brokers that are subscribers, one for each target that was notified lately.",
)
LIMITER_SUBSCRIPTIONS: Final = Metric(
    name="statesvc.limiter.subscriptions",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{subscription}",
    description="Subscriptions that were notified lately, by their breaker: closed, open, half_open.",
    attributes=(Attribute.STATE,),
)
LIMITER_PERMITS: Final = Metric(
    name="statesvc.limiter.permits",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{permit}",
    description="Requests that the limiter allows at a time (allowed), and those under way (used).",
    attributes=(Attribute.STATE,),
)
NOTICES: Final = Metric(
    name="statesvc.notices",
    instrument=Instrument.COUNTER,
    unit="{notice}",
    description="Notices to the operator. type: subscription.failing, subscription.disabled, subscription.recovered.",
    attributes=(Attribute.TYPE,),
)
CLAIMS: Final = Metric(
    name="statesvc.claims",
    instrument=Instrument.COUNTER,
    unit="{claim}",
    description="Claims by queue (inbox, outbox) and by how much they found: empty, partial, full.",
    attributes=(Attribute.QUEUE, Attribute.FILL),
)
ARCHIVED_BODIES: Final = Metric(
    name="statesvc.archive.bodies",
    instrument=Instrument.COUNTER,
    unit="{body}",
    description="Bodies of whole days that were written to their archive and compared with it.",
)
ARCHIVE_FAILURES: Final = Metric(
    name="statesvc.archive.failures",
    instrument=Instrument.COUNTER,
    unit="{failure}",
    description="Days that could not be archived, passes that failed, files found missing or altered. `statesvc doctor` says which.",
)
SEALED_ENTRIES: Final = Metric(
    name="statesvc.sealer.entries",
    instrument=Instrument.COUNTER,
    unit="{entry}",
    description="Entries of the log that this process sealed.",
)
SEALING_LAG: Final = Metric(
    name="statesvc.sealer.lag",
    instrument=Instrument.HISTOGRAM,
    unit="s",
    description="From the recording of the oldest entry of a pass to the pass.",
    buckets=LAG_BUCKETS,
)
SEALER_LEADS: Final = Metric(
    name="statesvc.sealer.leads",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="1",
    description="1 for the sealer that leads; its standbys are at 0. No process at 1: nothing is sealed.",
)
SEALER_REFUSES: Final = Metric(
    name="statesvc.sealer.refuses",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="1",
    description="1 while the log contradicts a published head: nothing is signed until a human has resolved it.",
)
CLOCK_OFFSET: Final = Metric(
    name="statesvc.sealer.clock_offset",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="s",
    description="The database's clock minus this machine's, as the sealer found it last; beyond 5 s it refuses.",
)
DUE_TIMES_REPAIRED: Final = Metric(
    name="statesvc.due_times.repaired",
    instrument=Instrument.COUNTER,
    unit="{row}",
    description="What was due at a time that no rule explains, and was taken as due: the database's clock was ahead.",
    attributes=(Attribute.QUEUE,),
)
CHECKPOINT_STAMPS: Final = Metric(
    name="statesvc.checkpoint.stamps",
    instrument=Instrument.COUNTER,
    unit="{stamp}",
    description="Time stamps of checkpoints that were asked of the authority: stamped, failed (its answer is in the log).",
    attributes=(Attribute.OUTCOME,),
)
CHECKPOINT_PUBLICATIONS: Final = Metric(
    name="statesvc.checkpoint.publications",
    instrument=Instrument.COUNTER,
    unit="{checkpoint}",
    description="Checkpoints to be stored outside (STATESVC_CHECKPOINT_PUBLISH): published, failed, contradicted (another one is there).",
    attributes=(Attribute.OUTCOME,),
)
STREAM_CLIENTS: Final = Metric(
    name="statesvc.stream.clients",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{client}",
    description="Clients of GET /v1/stream: live (at the end of the log), behind (reading older parts of it).",
    attributes=(Attribute.STATE,),
)
STREAM_TRANSITIONS: Final = Metric(
    name="statesvc.stream.transitions",
    instrument=Instrument.COUNTER,
    unit="{transition}",
    description="Transitions sent to clients of the stream.",
)
STREAM_ENDS: Final = Metric(
    name="statesvc.stream.ends",
    instrument=Instrument.COUNTER,
    unit="{stream}",
    description="Streams that ended. cause: closed (by the client), slow (took nothing for too long), shed (the process is under "
    "pressure), stopping, revoked (its key), failed (the log could not be read).",
    attributes=(Attribute.CAUSE,),
)
INBOX_DEPTH: Final = Metric(
    name="statesvc.inbox.depth",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{message}",
    description="Messages in the inbox: ready, leased (held by a worker), scheduled (their time is yet to come), held (kill switch). "
    "Counted in the table, each as far as 100,000; every api process reports the same.",
    attributes=(Attribute.CARRIER, Attribute.STATE),
)
INBOX_OLDEST_READY: Final = Metric(
    name="statesvc.inbox.oldest_ready",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="s",
    description="How long the first message that is ready has been ready; 0 where none is.",
    attributes=(Attribute.CARRIER,),
)
OUTBOX_DEPTH: Final = Metric(
    name="statesvc.outbox.depth",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{notification}",
    description="Notifications in the outbox: ready, leased (on their way), scheduled. Counted as those of the inbox are.",
    attributes=(Attribute.STATE,),
)
DEAD_LETTERS_OPEN: Final = Metric(
    name="statesvc.dead_letters.open",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{dead_letter}",
    description="Dead letters that wait for a human.",
)
LISTENER_UP: Final = Metric(
    name="statesvc.listener.up",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="1",
    description="1 while wake-ups can be heard; at 0 the process polls.",
)
POOL_CONNECTIONS: Final = Metric(
    name="statesvc.pool.connections",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{connection}",
    description="Database connections by state (idle, used) and the bound (max).",
    attributes=(Attribute.POOL, Attribute.STATE),
)
POOL_WAITING: Final = Metric(
    name="statesvc.pool.waiting",
    instrument=Instrument.OBSERVED_GAUGE,
    unit="{request}",
    description="Requests that wait for a connection now.",
    attributes=(Attribute.POOL,),
)
POOL_ERRORS: Final = Metric(
    name="statesvc.pool.errors",
    instrument=Instrument.OBSERVED_COUNTER,
    unit="{error}",
    description="Acquisitions that timed out or were refused (requests), connections lost or not made (connections).",
    attributes=(Attribute.POOL, Attribute.TYPE),
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))


class Stage(StrEnum):
    """Where a message is on its way. A span is named `statesvc.<stage>`."""

    INGEST = "ingest"
    CLAIM = "claim"
    NORMALIZE = "normalize"
    APPEND = "append"
    PROJECT = "project"
    SETTLE = "settle"
    DELIVER = "deliver"
