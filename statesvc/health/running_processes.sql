-- name: processes
-- Return what was heard of lately, and does not stop: whether it has missed three heartbeats, and whether its role has started again on its
-- machine since.
WITH now AS MATERIALIZED (
    SELECT statesvc.clock() AS at
)
SELECT w.role, w.host, w.pid, extract(epoch FROM now.at - w.started_at)::float8 AS started_seconds_ago,
    extract(epoch FROM now.at - w.last_seen_at)::float8 AS seen_seconds_ago,
    w.last_seen_at <= now.at - 3 * w.beat_seconds * interval '1 second' AS is_silent,
    EXISTS (SELECT FROM statesvc.worker o WHERE o.role = w.role AND o.host = w.host AND o.started_at > w.last_seen_at) AS is_replaced,
    w.ingest, w.addons
FROM now JOIN statesvc.worker w ON w.last_seen_at > now.at - make_interval(secs => %(seconds_max)s) AND w.stopping_at IS NULL
ORDER BY w.last_seen_at DESC, w.worker_id LIMIT %(limit)s;

-- name: deaths
-- Return how often each role died lately on each machine, when last, and how.
SELECT w.role, w.host, count(*), extract(epoch FROM statesvc.clock() - max(w.stopping_at))::float8,
    (array_agg((w.ingest ->> 'exit_code')::int ORDER BY w.stopping_at DESC))[1],
    (array_agg((w.ingest ->> 'out_of_memory')::boolean ORDER BY w.stopping_at DESC))[1]
FROM statesvc.worker w
WHERE w.stopping_at > statesvc.clock() - make_interval(secs => %(seconds_max)s) AND w.ingest ? 'exit_code'
GROUP BY w.role, w.host ORDER BY count(*) DESC, w.role, w.host;

-- name: writable
-- Return why this database takes no writes: whether it is a standby, and where a setting says so.
SELECT pg_is_in_recovery(),
    CASE WHEN current_setting('default_transaction_read_only') = 'on'
        THEN (SELECT s.source FROM pg_settings s WHERE s.name = 'default_transaction_read_only') END;
