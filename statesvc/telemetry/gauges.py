"""The half of the table of `names` that is read at each scrape: gauges, and sums that something else adds up."""

from typing import Final

from statesvc.telemetry.metric import Attribute, gauge, total

INGEST_STORAGE_LOW: Final = gauge(
    "statesvc.ingest.storage_low",
    "1",
    "1 while every webhook is refused: the database's disk is at STATESVC_INGRESS_DISK_FREE_BYTES_MIN. Of the embedded server alone.",
)
INGEST_LAST_PUSH: Final = gauge(
    "statesvc.ingest.last_push",
    "s",
    "When a carrier was last heard, in seconds since 1970; repeats count. Only carriers that pushed within eight days.",
    Attribute.CARRIER,
)
DELIVERIES_IN_FLIGHT: Final = gauge(
    "statesvc.notifications.in_flight", "{attempt}", "Tries that wait for their subscriber now."
)
BROKER_CONNECTIONS: Final = gauge(
    "statesvc.notifications.broker_connections",
    "{connection}",
    "Connections to brokers that are subscribers, one for each target that was notified lately.",
)
LIMITER_SUBSCRIPTIONS: Final = gauge(
    "statesvc.limiter.subscriptions",
    "{subscription}",
    "Subscriptions that were notified lately, by their breaker: closed, open, half_open.",
    Attribute.STATE,
)
LIMITER_PERMITS: Final = gauge(
    "statesvc.limiter.permits",
    "{permit}",
    "Requests that the limiter allows at a time (allowed), and those under way (used).",
    Attribute.STATE,
)
SEALER_LEADS: Final = gauge(
    "statesvc.sealer.leads",
    "1",
    "1 for the sealer that leads; its standbys are at 0. No process at 1: nothing is sealed.",
)
SEALER_REFUSES: Final = gauge(
    "statesvc.sealer.refuses",
    "1",
    "1 while the log contradicts a published head: nothing is signed until a human has resolved it.",
)
CLOCK_OFFSET: Final = gauge(
    "statesvc.sealer.clock_offset",
    "s",
    "The database's clock minus this machine's, as the sealer found it last; beyond 5 s it refuses.",
)
STREAM_CLIENTS: Final = gauge(
    "statesvc.stream.clients",
    "{client}",
    "Clients of GET /v1/stream: live (at the end of the log), behind (reading older parts of it).",
    Attribute.STATE,
)
INBOX_DEPTH: Final = gauge(
    "statesvc.inbox.depth",
    "{message}",
    "Messages in the inbox: ready, leased (held by a worker), scheduled (their time is yet to come), held (kill switch). "
    "Counted in the table, each as far as 100,000; every api process reports the same.",
    Attribute.CARRIER,
    Attribute.STATE,
)
INBOX_OLDEST_READY: Final = gauge(
    "statesvc.inbox.oldest_ready",
    "s",
    "How long the first message that is ready has been ready; 0 where none is.",
    Attribute.CARRIER,
)
INBOX_OLDEST_HELD: Final = gauge(
    "statesvc.inbox.oldest_held",
    "s",
    "How long the first message of a carrier that is on hold has waited; 0 where none does.",
    Attribute.CARRIER,
)
OUTBOX_DEPTH: Final = gauge(
    "statesvc.outbox.depth",
    "{notification}",
    "Notifications in the outbox: ready, leased (on their way), scheduled. Counted as those of the inbox are.",
    Attribute.STATE,
)
OUTBOX_OLDEST_READY: Final = gauge(
    "statesvc.outbox.oldest_ready",
    "s",
    "How long the first notification of a subscription that is ready has been ready: of the twenty subscriptions with the "
    "most waiting, those that are paused or disabled left out.",
    Attribute.SUBSCRIPTION,
)
OUTBOX_WAITING: Final = gauge(
    "statesvc.outbox.waiting",
    "{notification}",
    "Notifications that wait for a subscription or are on their way to it, counted as far as 10,000: of the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_LIMIT: Final = gauge(
    "statesvc.limiter.limit",
    "{permit}",
    "Requests at a time that the notifiers allow a subscription together: of the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_IN_FLIGHT: Final = gauge(
    "statesvc.limiter.in_flight",
    "{permit}",
    "Requests under way to a subscription: of the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_OPEN: Final = gauge(
    "statesvc.limiter.open",
    "{breaker}",
    "Notifiers whose breaker for a subscription is open or half open: of the same twenty.",
    Attribute.SUBSCRIPTION,
)
SUBSCRIPTIONS_FAILING: Final = gauge(
    "statesvc.subscriptions.failing",
    "{subscription}",
    "Subscriptions of which every try has failed for ten minutes or longer (failing), and those that the service disabled (disabled).",
    Attribute.STATE,
)
DEAD_LETTERS_OPEN: Final = gauge(
    "statesvc.dead_letters.open",
    "{dead_letter}",
    "Dead letters that wait for a human, by kind (message, code, notification) and cause. Counted as far as 100,000.",
    Attribute.KIND,
    Attribute.CAUSE,
)
PROMISES_EXPECTED: Final = gauge(
    "statesvc.promises.expected",
    "1",
    "What the reconciler compared over the last eight days. promise: settled (messages that were acknowledged), notified "
    "(notifications that the log says are due).",
    Attribute.PROMISE,
)
PROMISES_WAITING: Final = gauge(
    "statesvc.promises.waiting",
    "1",
    "Of these, what still waited when it was last looked at.",
    Attribute.PROMISE,
)
PROMISES_MISSING: Final = gauge(
    "statesvc.promises.missing",
    "1",
    "Of these, what is nowhere: lost. Anything but 0 is a human's matter.",
    Attribute.PROMISE,
)
PROMISES_BEHIND: Final = gauge(
    "statesvc.promises.behind",
    "s",
    "How long ago was recorded what the reconciler compared last. It grows while nothing comes in.",
    Attribute.PROMISE,
)
OLDEST_UNSEALED: Final = gauge(
    "statesvc.sealer.oldest_unsealed",
    "s",
    "How long the oldest entry of the log that is not sealed yet has waited; 0 where none does. Grows while no sealer works.",
)
PARTITION_HORIZON: Final = gauge(
    "statesvc.partitions.horizon",
    "s",
    "Until the first table has no partition for what it is to take: from then on every append would stop.",
)
OLDEST_TRANSACTION: Final = gauge(
    "statesvc.database.oldest_transaction",
    "s",
    "Age of the oldest transaction that keeps dead rows from being removed, as far as the service's role may see.",
)
NOTIFY_QUEUE: Final = gauge(
    "statesvc.database.notify_queue",
    "1",
    "How full the NOTIFY queue of the PostgreSQL server is, from 0 to 1; at 1 every NOTIFY of every database is refused.",
)
DATABASE_SIZE: Final = gauge(
    "statesvc.database.size", "By", "The database on disk, write-ahead log left out."
)
DATABASE_WAL: Final = total(
    "statesvc.database.wal", "By", "Write-ahead log written since the cluster was made."
)
DISK_FREE: Final = gauge(
    "statesvc.disk.free",
    "By",
    "Free on the volumes that this process can see: data (the embedded server's), archive.",
    Attribute.VOLUME,
)
PROCESSES: Final = gauge(
    "statesvc.processes",
    "{process}",
    "Processes of the service by role that were heard of within three heartbeats.",
    Attribute.TYPE,
)
ROLE_ANSWERS: Final = gauge(
    "statesvc.role.answers",
    "1",
    "0 while a process of `statesvc up` does not answer its supervisor, which then starts it again; `notifier+sealer` is one.",
    Attribute.TYPE,
)
PROCESSES_SILENT: Final = gauge(
    "statesvc.processes.silent",
    "{process}",
    "Processes by role that missed three heartbeats within the last ten minutes, and were not started again on their machine.",
    Attribute.TYPE,
)
PROCESSES_DIED: Final = gauge(
    "statesvc.processes.died",
    "{process}",
    "Processes by role that died within the last ten minutes, as the supervisor of `statesvc up` noted.",
    Attribute.TYPE,
)
LISTENER_UP: Final = gauge(
    "statesvc.listener.up", "1", "1 while wake-ups can be heard; at 0 the process polls."
)
POOL_CONNECTIONS: Final = gauge(
    "statesvc.pool.connections",
    "{connection}",
    "Database connections by state (idle, used) and the bound (max).",
    Attribute.POOL,
    Attribute.STATE,
)
POOL_WAITING: Final = gauge(
    "statesvc.pool.waiting", "{request}", "Requests that wait for a connection now.", Attribute.POOL
)
POOL_ERRORS: Final = total(
    "statesvc.pool.errors",
    "{error}",
    "Acquisitions that timed out or were refused (requests), connections lost or not made (connections).",
    Attribute.POOL,
    Attribute.TYPE,
)
