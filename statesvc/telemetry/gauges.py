"""The half of the table of `names` that is read at each scrape: gauges, and sums that
something else adds up.
"""

from typing import Final

from statesvc.telemetry.metric import Attribute, gauge, total

INGEST_STORAGE_LOW: Final = gauge(
    "statesvc.ingest.storage_low",
    "1",
    "1 while webhooks are refused because the disk is at "
    "STATESVC_INGRESS_DISK_FREE_BYTES_MIN. Embedded server only.",
)
SPOOL_MESSAGES: Final = gauge(
    "statesvc.spool.messages",
    "{message}",
    "Acknowledged messages in this process's spool that the database has not stored yet.",
)
SPOOL_BYTES: Final = gauge(
    "statesvc.spool.used", "By", "Bytes of the spool, of the STATESVC_SPOOL_BYTES_MAX it may have."
)
SPOOL_OLDEST: Final = gauge(
    "statesvc.spool.oldest", "s", "Age of the spool's oldest message that waits; 0 without any."
)
INGEST_LAST_PUSH: Final = gauge(
    "statesvc.ingest.last_push",
    "s",
    "Time of a carrier's last push, retries included, in seconds since 1970. Carriers with a "
    "push within eight days.",
    Attribute.CARRIER,
)
DELIVERIES_IN_FLIGHT: Final = gauge(
    "statesvc.notifications.in_flight", "{attempt}", "Attempts waiting for their subscriber."
)
BROKER_CONNECTIONS: Final = gauge(
    "statesvc.notifications.broker_connections",
    "{connection}",
    "Connections to subscribers' brokers, one for each recently notified target.",
)
LIMITER_SUBSCRIPTIONS: Final = gauge(
    "statesvc.limiter.subscriptions",
    "{subscription}",
    "Recently notified subscriptions by breaker state: closed, open, half_open.",
    Attribute.STATE,
)
LIMITER_PERMITS: Final = gauge(
    "statesvc.limiter.permits",
    "{permit}",
    "Concurrent requests allowed by the limiter (allowed) and in flight (used).",
    Attribute.STATE,
)
SEALER_LEADS: Final = gauge(
    "statesvc.sealer.leads",
    "1",
    "1 for the leading sealer, 0 for standbys. If all are 0, sealing has stopped.",
)
SEALER_REFUSES: Final = gauge(
    "statesvc.sealer.refuses",
    "1",
    "1 while the log contradicts a published head: signing stops until an operator decides.",
)
CLOCK_OFFSET: Final = gauge(
    "statesvc.sealer.clock_offset",
    "s",
    "The database's clock minus this machine's, at the sealer's last check; it refuses above 5 s.",
)
STREAM_CLIENTS: Final = gauge(
    "statesvc.stream.clients",
    "{client}",
    "Clients of GET /v1/stream: live (at the end of the log), behind (catching up).",
    Attribute.STATE,
)
INBOX_DEPTH: Final = gauge(
    "statesvc.inbox.depth",
    "{message}",
    "Messages in the inbox: ready, leased, scheduled (for later), held (kill switch). Each is "
    "counted up to 100,000; all api processes report the same.",
    Attribute.CARRIER,
    Attribute.STATE,
)
INBOX_OLDEST_READY: Final = gauge(
    "statesvc.inbox.oldest_ready",
    "s",
    "Waiting time of the oldest ready message; 0 if none.",
    Attribute.CARRIER,
)
INBOX_OLDEST_HELD: Final = gauge(
    "statesvc.inbox.oldest_held",
    "s",
    "Waiting time of a held carrier's oldest message; 0 if none.",
    Attribute.CARRIER,
)
OUTBOX_DEPTH: Final = gauge(
    "statesvc.outbox.depth",
    "{notification}",
    "Notifications in the outbox: ready, leased, scheduled. Counted like the inbox.",
    Attribute.STATE,
)
OUTBOX_OLDEST_READY: Final = gauge(
    "statesvc.outbox.oldest_ready",
    "s",
    "Waiting time of a subscription's oldest ready notification, for the twenty subscriptions "
    "with the largest backlog, without paused and disabled ones.",
    Attribute.SUBSCRIPTION,
)
OUTBOX_WAITING: Final = gauge(
    "statesvc.outbox.waiting",
    "{notification}",
    "Waiting and leased notifications of a subscription, up to 10,000, for the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_LIMIT: Final = gauge(
    "statesvc.limiter.limit",
    "{permit}",
    "Concurrent requests that all notifiers allow a subscription, for the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_IN_FLIGHT: Final = gauge(
    "statesvc.limiter.in_flight",
    "{permit}",
    "Requests in flight to a subscription, for the same twenty.",
    Attribute.SUBSCRIPTION,
)
LIMITER_OPEN: Final = gauge(
    "statesvc.limiter.open",
    "{breaker}",
    "Notifiers with an open or half open breaker for a subscription, for the same twenty.",
    Attribute.SUBSCRIPTION,
)
SUBSCRIPTIONS_FAILING: Final = gauge(
    "statesvc.subscriptions.failing",
    "{subscription}",
    "Subscriptions with only failed attempts for at least ten minutes (failing), and "
    "subscriptions disabled by the service (disabled).",
    Attribute.STATE,
)
DEAD_LETTERS_OPEN: Final = gauge(
    "statesvc.dead_letters.open",
    "{dead_letter}",
    ("Open dead letters by kind (message, code, notification) and cause, counted up to 100,000."),
    Attribute.KIND,
    Attribute.CAUSE,
)
PROMISES_EXPECTED: Final = gauge(
    "statesvc.promises.expected",
    "1",
    "Checked by the reconciler over the last eight days. promise: settled (acknowledged "
    "messages), notified (due notifications by the log).",
    Attribute.PROMISE,
)
PROMISES_WAITING: Final = gauge(
    "statesvc.promises.waiting",
    "1",
    "Expected, and still waiting at the last check.",
    Attribute.PROMISE,
)
PROMISES_MISSING: Final = gauge(
    "statesvc.promises.missing",
    "1",
    "Expected, and lost. Any value above 0 needs an operator.",
    Attribute.PROMISE,
)
PROMISES_BEHIND: Final = gauge(
    "statesvc.promises.behind",
    "s",
    "Age of the reconciler's last checked record. Grows without traffic.",
    Attribute.PROMISE,
)
OLDEST_UNSEALED: Final = gauge(
    "statesvc.sealer.oldest_unsealed",
    "s",
    "Age of the oldest unsealed log entry; 0 if none. Grows without a working sealer.",
)
PARTITION_HORIZON: Final = gauge(
    "statesvc.partitions.horizon",
    "s",
    "Time until a table runs out of partitions and every append stops.",
)
OLDEST_TRANSACTION: Final = gauge(
    "statesvc.database.oldest_transaction",
    "s",
    ("Age of the oldest transaction that prevents vacuum, as far as the service's role can see."),
)
NOTIFY_QUEUE: Final = gauge(
    "statesvc.database.notify_queue",
    "1",
    "Fill of the server's NOTIFY queue, 0 to 1; at 1 PostgreSQL refuses NOTIFY in every database.",
)
DATABASE_SIZE: Final = gauge(
    "statesvc.database.size", "By", "Size of the database on disk, without write-ahead log."
)
DATABASE_WAL: Final = total(
    "statesvc.database.wal", "By", "Write-ahead log written since the cluster was created."
)
DISK_FREE: Final = gauge(
    "statesvc.disk.free",
    "By",
    "Free bytes of visible volumes: data (embedded server), archive.",
    Attribute.VOLUME,
)
PROCESSES: Final = gauge(
    "statesvc.processes",
    "{process}",
    "Processes by role with a heartbeat within three intervals.",
    Attribute.TYPE,
)
ROLE_ANSWERS: Final = gauge(
    "statesvc.role.answers",
    "1",
    "0 while a process of `statesvc up` does not answer its supervisor, which restarts it; "
    "`notifier+sealer` is a single process.",
    Attribute.TYPE,
)
PROCESSES_SILENT: Final = gauge(
    "statesvc.processes.silent",
    "{process}",
    "Processes by role that missed three heartbeats in the last ten minutes without a restart "
    "on their machine.",
    Attribute.TYPE,
)
PROCESSES_DIED: Final = gauge(
    "statesvc.processes.died",
    "{process}",
    "Processes by role that died in the last ten minutes, by the supervisor of `statesvc up`.",
    Attribute.TYPE,
)
LISTENER_UP: Final = gauge(
    "statesvc.listener.up", "1", "1 while wake-ups arrive; at 0 the process polls."
)
POOL_CONNECTIONS: Final = gauge(
    "statesvc.pool.connections",
    "{connection}",
    "Database connections by state (idle, used) and the limit (max).",
    Attribute.POOL,
    Attribute.STATE,
)
POOL_WAITING: Final = gauge(
    "statesvc.pool.waiting", "{request}", "Requests waiting for a connection.", Attribute.POOL
)
POOL_ERRORS: Final = total(
    "statesvc.pool.errors",
    "{error}",
    "Timed-out or refused acquisitions (requests), lost or failed connections (connections).",
    Attribute.POOL,
    Attribute.TYPE,
)
