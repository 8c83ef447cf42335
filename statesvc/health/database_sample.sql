-- name: gauges
-- Return the gauges of the database as a whole. The oldest transaction is one of those that this role may see (pg_read_all_stats).
SELECT
    (SELECT coalesce(extract(epoch FROM statesvc.clock() - min(u.recorded_from))::float8, 0) FROM statesvc.unsealed u) AS oldest_unsealed,
    (SELECT coalesce(extract(epoch FROM max(clock_timestamp() - a.xact_start))::float8, 0) FROM pg_stat_activity a
        WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_xmin IS NOT NULL) AS oldest_transaction,
    pg_database_size(current_database()) AS size,
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint END AS wal;

-- name: notify_queue
-- Return how full the server's NOTIFY queue is, and the session that most likely holds it, of any database, as far as this role may see: a
-- listener reads nothing inside a transaction, and what it has not read stays.
SELECT pg_notification_queue_usage(), h.pid, h.usename, h.datname, h.application_name, h.state, h.seconds
FROM (VALUES (1)) one
LEFT JOIN LATERAL (
    SELECT a.pid, a.usename, a.datname, a.application_name, a.state, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
    FROM pg_stat_activity a
    WHERE a.backend_type = 'client backend'
        AND (a.state LIKE 'idle in transaction%%' OR a.xact_start < clock_timestamp() - interval '5 seconds')
    ORDER BY a.xact_start LIMIT 1
) h ON true;

-- name: partition_horizon
-- Return the seconds until the first table has no partition left. The end of a partition stands in its bounds.
SELECT min(h.seconds) FROM (
    SELECT extract(epoch FROM max(
        substring(pg_get_expr(c.relpartbound, c.oid) FROM $$TO \('([^']+)'\)$$)::timestamptz) - statesvc.clock())::float8 AS seconds
    FROM statesvc.partitioned p
    JOIN pg_inherits i ON i.inhparent = ('statesvc.' || quote_ident(p.table_name))::regclass
    JOIN pg_class c ON c.oid = i.inhrelid
    GROUP BY p.table_name
) h;

-- name: dead_letters
-- Return what waits for a human, as far as `count_max`, by kind and cause.
SELECT d.kind, d.cause, count(*)
FROM (SELECT d.kind, d.cause FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL LIMIT %(count_max)s) d GROUP BY d.kind, d.cause;

-- name: last_pushes
-- Return when each carrier was last heard, in seconds since 1970.
SELECT l.carrier_id, extract(epoch FROM t.last_at)::float8
FROM statesvc.lane l
CROSS JOIN LATERAL (
    SELECT max(t.last_at) AS last_at FROM (
        SELECT t.last_at FROM statesvc.ack_count t
        WHERE t.carrier_id = l.carrier_id AND t.last_at IS NOT NULL ORDER BY t.minute DESC LIMIT 100
    ) t
) t
WHERE t.last_at IS NOT NULL;

-- name: subscriptions
-- Return the subscriptions with the most waiting, counted as far as `count_max`, with what the notifiers know of them.
WITH now AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), waiting AS (
    SELECT s.subscription_id, w.messages
    FROM statesvc.subscription s
    CROSS JOIN LATERAL (
        SELECT count(*) AS messages FROM (SELECT FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id LIMIT %(count_max)s) o
    ) w
    WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL AND w.messages > 0
    ORDER BY w.messages DESC LIMIT %(limit)s
)
SELECT w.subscription_id::text, w.messages, coalesce(extract(epoch FROM now.at - least(first.available_at, again.available_at))::float8, 0),
    coalesce(l.limits, 0), coalesce(l.in_flight, 0), coalesce(l.open, 0)
FROM now
CROSS JOIN waiting w
LEFT JOIN LATERAL (SELECT o.available_at FROM statesvc.outbox o
    WHERE o.subscription_id = w.subscription_id AND o.attempts = 0 AND o.available_at <= now.at ORDER BY o.available_at LIMIT 1) first ON true
LEFT JOIN LATERAL (SELECT o.available_at FROM statesvc.outbox o
    WHERE o.subscription_id = w.subscription_id AND o.attempts > 0 AND o.token IS NULL AND o.available_at <= now.at
    ORDER BY o.available_at LIMIT 1) again ON true
LEFT JOIN LATERAL (
    SELECT sum(m.concurrency) AS limits, sum(m.in_flight) AS in_flight, count(*) FILTER (WHERE m.breaker <> 'closed') AS open
    FROM statesvc.limiter_state m WHERE m.subscription_id = w.subscription_id
) l ON true;

-- name: failing
-- Return how many subscriptions fail for ten minutes or longer, and how many the service disabled.
SELECT
    (SELECT count(*) FROM statesvc.subscription_failing f JOIN statesvc.subscription s ON s.subscription_id = f.subscription_id
        WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND f.since < statesvc.clock() - interval '10 minutes') AS failing,
    (SELECT count(*) FROM statesvc.subscription s WHERE s.deleted_at IS NULL AND s.disabled_at IS NOT NULL) AS disabled;

-- name: processes
-- Return what runs, by role.
SELECT w.role, count(*) FROM statesvc.worker w
WHERE w.last_seen_at > statesvc.clock() - 3 * w.beat_seconds * interval '1 second' AND w.stopping_at IS NULL GROUP BY w.role;
