-- name: lock_failing
-- Lock what is known of failing receivers, in order of their ids.
SELECT f.subscription_id FROM statesvc.subscription_failing f
WHERE f.subscription_id = ANY (%(subscription_ids)b::uuid[]) ORDER BY f.subscription_id FOR UPDATE;

-- name: forget_failing
-- Note that these receivers accepted a notification and no longer fail. Return those that a notice had warned of.
WITH well AS (
    DELETE FROM statesvc.subscription_failing f WHERE f.subscription_id = ANY (%(subscription_ids)b::uuid[])
    RETURNING f.subscription_id, f.since, f.failures, f.warned_at
)
SELECT w.subscription_id, w.since, w.failures FROM well w WHERE w.warned_at IS NOT NULL ORDER BY w.subscription_id;

-- name: note_failing
-- Note that these receivers failed, with how often since the last success in the group.
INSERT INTO statesvc.subscription_failing AS f (subscription_id, since, last_at, failures, last_outcome, last_status_code)
SELECT u.subscription_id, %(now)s, %(now)s, u.failures, u.outcome, u.status_code
FROM unnest(%(subscription_ids)b::uuid[], %(failures)b::int[], %(outcomes)b::text[], %(status_codes)b::int[])
    AS u(subscription_id, failures, outcome, status_code)
ORDER BY u.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET last_at = EXCLUDED.last_at, failures = f.failures + EXCLUDED.failures,
    last_outcome = EXCLUDED.last_outcome, last_status_code = EXCLUDED.last_status_code;

-- name: read_failing
-- Return the live subscriptions whose receivers have failed for so long that they are to be reviewed, and which to disable; of the others
-- nobody was warned in this period of failures. A burst of failures, then a quiet day, is no receiver that fails all day. What another holds
-- is left out: nothing here waits for a lock.
SELECT s.subscription_id, f.since, f.failures, concat_ws(', status ', f.last_outcome, f.last_status_code), e.ends, t.now
FROM statesvc.subscription_failing f
JOIN statesvc.subscription s ON s.subscription_id = f.subscription_id
CROSS JOIN (SELECT statesvc.clock() AS now) t
CROSS JOIN LATERAL (
    SELECT f.since <= t.now - make_interval(secs => %(disable_seconds)s::float8) AND f.failures >= %(failures_min)s::int AS ends
) e
WHERE f.since <= t.now - make_interval(secs => %(warn_seconds)s::float8)
    AND f.last_at - f.since >= make_interval(secs => %(spread_seconds)s::float8) AND (f.warned_at IS NULL OR e.ends)
    AND s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL
ORDER BY s.subscription_id LIMIT %(limit)s FOR NO KEY UPDATE OF s, f SKIP LOCKED;

-- name: warned
-- Note that the operator was warned of these.
UPDATE statesvc.subscription_failing SET warned_at = %(now)s WHERE subscription_id = ANY (%(subscription_ids)b::uuid[]);

-- name: disable
-- Disable these, in order of their ids; what waits for them stays. Return those that were not disabled before, and since when they have
-- missed something.
WITH locked AS MATERIALIZED (
    SELECT s.subscription_id FROM statesvc.subscription s
    WHERE s.subscription_id = ANY (%(subscription_ids)b::uuid[]) AND s.disabled_at IS NULL AND s.deleted_at IS NULL
    ORDER BY s.subscription_id FOR NO KEY UPDATE
)
UPDATE statesvc.subscription s SET disabled_at = %(now)s, disabled_why = %(why)s, missed_since = least(s.missed_since, %(now)s,
    (SELECT f.since FROM statesvc.subscription_failing f WHERE f.subscription_id = s.subscription_id))
FROM locked l CROSS JOIN LATERAL statesvc.open_notifications(l.subscription_id) w WHERE s.subscription_id = l.subscription_id
RETURNING s.subscription_id, s.missed_since, w.open, w.open_since, w.open_until;
