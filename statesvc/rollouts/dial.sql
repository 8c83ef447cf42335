-- name: rollout
-- The dial of one carrier, and the kill switch of all ('*').
SELECT r.carrier_id, r.candidate, r.percent, r.shadow, r.hold, r.changed_at, r.changed_by, r.why
FROM statesvc.rollout r
WHERE r.carrier_id IN (%(carrier_id)s, '*');

-- name: rollouts
-- Every dial that was ever touched; a row a carrier at most.
SELECT r.carrier_id, r.candidate, r.percent, r.shadow, r.hold, r.changed_at, r.changed_by, r.why
FROM statesvc.rollout r
ORDER BY r.carrier_id;

-- name: set_hold
-- Turns the kill switch; leaves candidate, share and shadow as they are.
INSERT INTO statesvc.rollout AS r (carrier_id, hold, changed_at, changed_by, why)
VALUES (%(carrier_id)s, %(hold)s, statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
    why = excluded.why;
