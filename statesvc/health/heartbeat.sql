-- name: beat
-- Say that this process lives, and since when it is stopping: one row a role, made again where it was forgotten.
INSERT INTO statesvc.worker AS w
    (worker_id, role, host, pid, version, normalizers, started_at, last_seen_at, stopping_at, beat_seconds, ingest, zones, addons)
SELECT i.worker_id, i.role, i.host, i.pid, i.version, i.normalizers, now.at - make_interval(secs => %(age_seconds)s), now.at,
    CASE WHEN %(stopping)s THEN now.at END, %(beat_seconds)s, %(ingest)s::jsonb, i.zones, i.addons
FROM (SELECT statesvc.clock() AS at) now
CROSS JOIN jsonb_to_recordset(%(incarnations)s::jsonb)
    AS i(worker_id text, role text, host text, pid int, version text, normalizers text[], zones text, addons text[])
ON CONFLICT (worker_id) DO UPDATE SET
    last_seen_at = excluded.last_seen_at, stopping_at = coalesce(w.stopping_at, excluded.stopping_at),
    beat_seconds = excluded.beat_seconds, ingest = excluded.ingest;

-- name: died
-- Note that processes died, and how: in `ingest`, which nobody reads of a row with `stopping_at`. One that died before its first beat gets a
-- row.
WITH died AS (
    SELECT d.*, statesvc.clock() - make_interval(secs => d.seconds_ago) AS at FROM jsonb_to_recordset(%(deaths)s::jsonb)
        AS d(worker_id text, role text, host text, pid int, version text, seconds_ago float8, how jsonb)
), marked AS (
    UPDATE statesvc.worker w SET stopping_at = d.at, ingest = d.how FROM died d
    WHERE w.host = d.host AND w.role = d.role AND w.pid = d.pid AND w.started_at <= d.at AND w.stopping_at IS NULL
    RETURNING d.worker_id
)
INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at, last_seen_at, stopping_at, ingest)
SELECT d.worker_id, d.role, d.host, d.pid, d.version, d.at, d.at, d.at, d.how FROM died d
WHERE d.worker_id NOT IN (SELECT m.worker_id FROM marked m)
    AND NOT EXISTS (SELECT FROM statesvc.worker w
        WHERE w.host = d.host AND w.role = d.role AND w.pid = d.pid AND w.stopping_at BETWEEN d.at - interval '5 s' AND d.at + interval '5 s')
ON CONFLICT (worker_id) DO NOTHING;

-- name: note_zones
-- Note that local times are read by this release of the time zones; once an hour at most.
INSERT INTO statesvc.zone_release AS z (zones, first_at, last_at)
SELECT %(zones)s::text, now.at, now.at FROM (SELECT statesvc.clock() AS at) now
ON CONFLICT (zones) DO UPDATE SET last_at = excluded.last_at WHERE z.last_at < excluded.last_at - interval '1 hour';

-- name: leave
-- Forget a process that ends cleanly.
DELETE FROM statesvc.worker w WHERE w.worker_id = ANY (%(worker_ids)s::text[]);

-- name: workers
-- Return every process with a row, and every other holder of messages: workers in other languages have no row. Leases are bounded by the
-- workers' batches, the rows by `limit`.
WITH now AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), held AS (
    SELECT q.worker AS worker_id, count(*) AS leases, max(q.leased_at) AS claimed_at
    FROM statesvc.inbox q WHERE q.token IS NOT NULL AND q.worker IS NOT NULL GROUP BY q.worker
), notifying AS (
    SELECT o.worker AS worker_id, count(*) AS leases FROM statesvc.outbox o WHERE o.token IS NOT NULL GROUP BY o.worker
), lost AS (
    SELECT a.worker AS worker_id, count(*) AS leases FROM statesvc.message_attempt a
    WHERE a.outcome = 'lease_ended' AND a.ended_at > (SELECT n.at - interval '1 day' FROM now n) GROUP BY a.worker
), known AS (
    SELECT w.worker_id FROM statesvc.worker w UNION SELECT h.worker_id FROM held h
)
SELECT k.worker_id, w.role, w.host, w.pid, w.version, w.started_at, w.stopping_at, coalesce(w.last_seen_at, h.claimed_at) AS last_seen_at,
    extract(epoch FROM now.at - coalesce(w.last_seen_at, h.claimed_at))::float8 AS seen_seconds_ago,
    w.last_seen_at <= now.at - 3 * w.beat_seconds * interval '1 second' AS is_silent,
    coalesce(h.leases, 0) + coalesce(t.leases, 0) AS leases, coalesce(l.leases, 0) AS leases_lost
FROM now
CROSS JOIN known k
LEFT JOIN statesvc.worker w ON w.worker_id = k.worker_id
LEFT JOIN held h ON h.worker_id = k.worker_id
LEFT JOIN notifying t ON t.worker_id = k.worker_id
LEFT JOIN lost l ON l.worker_id = k.worker_id
ORDER BY coalesce(w.last_seen_at, h.claimed_at) DESC NULLS LAST, k.worker_id
LIMIT %(limit)s;

-- name: rescues
-- Return how many messages were taken over in the last hour because someone's lease had ended, as far as `count_max`.
SELECT count(*) FROM (
    SELECT FROM statesvc.message_attempt a
    WHERE a.outcome = 'lease_ended' AND a.ended_at > (SELECT statesvc.clock() - interval '1 hour') LIMIT %(count_max)s
) r;
