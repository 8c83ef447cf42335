-- name: rollout
-- The dial of one carrier, and the kill switch of all ('*').
SELECT r.carrier_id, r.candidate, r.percent, r.shadow, r.hold, r.changed_at, r.changed_by, r.why, r.turned_at, r.guard_messages,
    r.guard_errors_percent, r.guard_differences_percent
FROM statesvc.rollout r
WHERE r.carrier_id IN (%(carrier_id)s, '*');

-- name: rollouts
-- Every dial that was ever touched; a row a carrier at most.
SELECT r.carrier_id, r.candidate, r.percent, r.shadow, r.hold, r.changed_at, r.changed_by, r.why, r.turned_at, r.guard_messages,
    r.guard_errors_percent, r.guard_differences_percent
FROM statesvc.rollout r
ORDER BY r.carrier_id;

-- name: lacking
-- Workers that run and lack the version that a dial asks for, and how many run.
SELECT r.carrier_id, r.candidate, r.percent, array_agg(w.worker_id ORDER BY w.worker_id) FILTER (WHERE w.lacks), count(*)
FROM statesvc.rollout r
CROSS JOIN LATERAL (
    SELECT a.worker_id, r.carrier_id || '/' || r.candidate <> ALL (a.normalizers) AS lacks FROM statesvc.worker a
    WHERE a.role = 'worker' AND a.stopping_at IS NULL AND a.last_seen_at > statesvc.clock() - make_interval(secs => %(silent_seconds)s)
) w
WHERE r.candidate IS NOT NULL AND (r.percent > 0 OR r.shadow)
GROUP BY r.carrier_id, r.candidate, r.percent
HAVING bool_or(w.lacks)
ORDER BY r.carrier_id;

-- name: set_hold
-- Turns the kill switch; leaves candidate, share and shadow as they are.
INSERT INTO statesvc.rollout AS r (carrier_id, hold, changed_at, changed_by, why)
VALUES (%(carrier_id)s, %(hold)s, statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
    why = excluded.why;

-- name: set_dial
-- Turns the share; leaves the kill switch as it is.
INSERT INTO statesvc.rollout AS r
    (carrier_id, candidate, percent, shadow, guard_messages, guard_errors_percent, guard_differences_percent, turned_at, changed_at,
     changed_by, why)
VALUES (%(carrier_id)s, %(candidate)s, %(percent)s, %(shadow)s, %(guard_messages)s, %(guard_errors_percent)s,
    %(guard_differences_percent)s, statesvc.clock(), statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET
    candidate = excluded.candidate, percent = excluded.percent, shadow = excluded.shadow, guard_messages = excluded.guard_messages,
    guard_errors_percent = excluded.guard_errors_percent, guard_differences_percent = excluded.guard_differences_percent,
    turned_at = excluded.turned_at, changed_at = excluded.changed_at, changed_by = excluded.changed_by, why = excluded.why;

-- name: lock_dial
-- The current candidate. The row stays locked, so that the next change of the dial waits.
SELECT r.candidate FROM statesvc.rollout r WHERE r.carrier_id = %(carrier_id)s FOR UPDATE;
