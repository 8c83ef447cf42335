-- name: lanes
-- Return what waits and what is leased, by carrier. Reads index entries only as far as `count_max` a lane and state; leases are bounded by
-- the workers' batches, and so is what is parked (it has a token, but no worker: see statesvc.waiting_token).
WITH now AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), leased AS (
    SELECT q.carrier_id, count(q.worker) AS leased,
        count(*) FILTER (WHERE q.worker IS NULL AND q.available_at <= now.at) AS ready,
        count(*) FILTER (WHERE q.worker IS NULL AND q.available_at > now.at) AS scheduled,
        min(q.available_at) FILTER (WHERE q.worker IS NULL AND q.available_at <= now.at) AS oldest
    FROM statesvc.inbox q, now WHERE q.token IS NOT NULL GROUP BY q.carrier_id
)
SELECT l.carrier_id, statesvc.held(l.carrier_id) AS held, ready.waiting + coalesce(leased.ready, 0) AS waiting,
    coalesce(leased.leased, 0) AS leased, scheduled.waiting + coalesce(leased.scheduled, 0) AS scheduled,
    extract(epoch FROM now.at - least(oldest.available_at, leased.oldest))::float8 AS oldest_seconds
FROM now
CROSS JOIN statesvc.lane l
LEFT JOIN leased ON leased.carrier_id = l.carrier_id
CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM statesvc.inbox q
    WHERE q.carrier_id = l.carrier_id AND q.token IS NULL AND q.available_at <= now.at LIMIT %(count_max)s) r) ready
CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM statesvc.inbox q
    WHERE q.carrier_id = l.carrier_id AND q.token IS NULL AND q.available_at > now.at LIMIT %(count_max)s) s) scheduled
LEFT JOIN LATERAL (SELECT q.available_at FROM statesvc.inbox q
    WHERE q.carrier_id = l.carrier_id AND q.token IS NULL AND q.available_at <= now.at ORDER BY q.available_at LIMIT 1) oldest ON true
WHERE l.carrier_id <> ''
ORDER BY l.carrier_id;

-- name: outbox
-- Return what waits to be sent, each state as far as `count_max`.
SELECT
    (SELECT count(*) FROM (SELECT FROM statesvc.outbox o WHERE o.token IS NULL AND o.available_at <= now.at LIMIT %(count_max)s) r) AS ready,
    (SELECT count(*) FROM (SELECT FROM statesvc.outbox o WHERE o.token IS NOT NULL LIMIT %(count_max)s) r) AS leased,
    (SELECT count(*) FROM (SELECT FROM statesvc.outbox o WHERE o.token IS NULL AND o.available_at > now.at LIMIT %(count_max)s) r) AS scheduled
FROM (SELECT statesvc.clock() AS at) now;

-- name: open_dead_letters
-- Return how many dead letters wait, as far as `count_max`.
SELECT count(*) AS dead_letters FROM (SELECT FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL LIMIT %(count_max)s) r;
