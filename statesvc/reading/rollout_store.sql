-- name: rollouts
-- Return every rollout that was ever touched; of one carrier its own, and the kill switch of all ('*').
SELECT r.carrier_id, r.stable, r.candidate, r.percent, r.shadow, r.fallback_seconds, r.hold, r.changed_at, r.changed_by, r.why, r.turned_at,
    r.guard_messages, r.guard_errors_percent, r.guard_differences_percent
FROM statesvc.rollout r
WHERE %(carrier_id)s::text IS NULL OR r.carrier_id IN (%(carrier_id)s, '*')
ORDER BY r.carrier_id;

-- name: lacking
-- Return the workers that run and lack the version that a rollout asks for, and how many run.
SELECT r.carrier_id, r.candidate, r.percent, array_agg(w.worker_id ORDER BY w.worker_id) FILTER (WHERE w.lacks), count(*)
FROM statesvc.rollout r
CROSS JOIN LATERAL (
    SELECT a.worker_id, r.carrier_id || '/' || r.candidate <> ALL (a.normalizers) AS lacks FROM statesvc.worker a
    WHERE a.role = 'worker' AND a.stopping_at IS NULL AND a.last_seen_at > statesvc.clock() - make_interval(secs => %(silent_seconds)s)
) w
WHERE strpos(r.candidate, '@') = 0 AND (r.percent > 0 OR r.shadow)
GROUP BY r.carrier_id, r.candidate, r.percent
HAVING bool_or(w.lacks)
ORDER BY r.carrier_id;

-- name: set_hold
-- Turn the kill switch; leave candidate, share and shadow as they are.
INSERT INTO statesvc.rollout AS r (carrier_id, hold, changed_at, changed_by, why)
VALUES (%(carrier_id)s, %(hold)s, statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
    why = excluded.why;

-- name: set_rollout
-- Turn the share; leave the kill switch as it is.
INSERT INTO statesvc.rollout AS r
    (carrier_id, stable, candidate, percent, shadow, fallback_seconds, guard_messages, guard_errors_percent, guard_differences_percent, turned_at, changed_at,
     changed_by, why)
VALUES (%(carrier_id)s, %(stable)s, %(candidate)s, %(percent)s, %(shadow)s, %(fallback_seconds)s, %(guard_messages)s, %(guard_errors_percent)s,
    %(guard_differences_percent)s, statesvc.clock(), statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET
    stable = excluded.stable, candidate = excluded.candidate, percent = excluded.percent, shadow = excluded.shadow,
    fallback_seconds = excluded.fallback_seconds, guard_messages = excluded.guard_messages,
    guard_errors_percent = excluded.guard_errors_percent, guard_differences_percent = excluded.guard_differences_percent,
    turned_at = excluded.turned_at, changed_at = excluded.changed_at, changed_by = excluded.changed_by, why = excluded.why;

-- name: reset_marks
-- Have the next claims look at all that waits: what was another reader's may be theirs now.
UPDATE statesvc.lane l SET low_water = '-infinity', raw_low_water = '-infinity' WHERE l.carrier_id = %(carrier_id)s;

-- name: readings
-- Return the readings of carriers that a foreign one shares: what each has of it, when it last asked for messages (or trials), what waits
-- of its buckets (as far as `count_max`), what it has leased, and what others had to take.
SELECT r.carrier_id, s.is_candidate, s.reading, s.share, r.fallback_seconds,
    extract(epoch FROM now.at - k.asked_at)::float8, extract(epoch FROM now.at - k.tried_at)::float8, w.waiting,
    extract(epoch FROM now.at - o.available_at)::float8, l.leased, coalesce(f.fallbacks, 0), extract(epoch FROM now.at - f.fallback_at)::float8
FROM (SELECT statesvc.clock() AS at) now
CROSS JOIN statesvc.rollout r
CROSS JOIN LATERAL (VALUES
    (false, statesvc.reader_of(r, 100), 100 - r.percent, r.percent::int, 99),
    (true, CASE WHEN strpos(r.candidate, '@') > 0 THEN r.candidate ELSE 'statesvc' END, r.percent::int, 0, r.percent - 1)
) s(is_candidate, reading, share, first, last)
LEFT JOIN LATERAL (
    SELECT max(k.asked_at) AS asked_at, max(k.tried_at) AS tried_at FROM statesvc.reader k
    WHERE k.carrier_id IN (r.carrier_id, '*') AND k.normalizer = s.reading) k ON true
LEFT JOIN statesvc.reader f ON f.carrier_id = r.carrier_id AND f.normalizer = s.reading
CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM statesvc.inbox q
    WHERE q.carrier_id = r.carrier_id AND q.token IS NULL AND statesvc.bucket(q.message_id, q.carrier_id, q.stage) BETWEEN s.first AND s.last
        AND q.available_at <= now.at LIMIT %(count_max)s) q) w
LEFT JOIN LATERAL (SELECT min(b.available_at) AS available_at FROM generate_series(s.first, s.last) AS bucket CROSS JOIN LATERAL (
    SELECT q.available_at FROM statesvc.inbox q
    WHERE q.carrier_id = r.carrier_id AND q.token IS NULL AND statesvc.bucket(q.message_id, q.carrier_id, q.stage) = bucket
        AND q.available_at <= now.at ORDER BY q.available_at LIMIT 1) b) o ON true
CROSS JOIN LATERAL (SELECT count(*) AS leased FROM statesvc.inbox q
    WHERE q.token IS NOT NULL AND q.worker IS NOT NULL AND q.available_at > now.at AND q.carrier_id = r.carrier_id AND q.stage = 'raw'
        AND coalesce(q.normalizer, 'statesvc') = s.reading) l
WHERE (r.stable IS NOT NULL OR strpos(r.candidate, '@') > 0) AND (NOT s.is_candidate OR r.candidate IS NOT NULL)
    AND r.carrier_id = coalesce(%(carrier_id)s, r.carrier_id)
ORDER BY r.carrier_id, s.is_candidate;

-- name: lock_rollout
-- Lock and return the current readings and share. The row stays locked, so that the next change of the rollout waits.
SELECT r.stable, r.candidate, r.percent FROM statesvc.rollout r WHERE r.carrier_id = %(carrier_id)s FOR UPDATE;
