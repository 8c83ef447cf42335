-- name: lock_rules
-- Lock the rules, so that changes are made one at a time and that revisions become visible in their order.
SELECT pg_advisory_xact_lock(hashtextextended('statesvc.expectation_rules', 0));

-- name: stated_rules
-- Return all rules that were stated, `*` first, each carrier's before those of its services, with who changed each and why.
SELECT x.carrier_id, x.service, x.revision, x.rules, x.changed_at, x.changed_by, x.why, x.rearm_recorded_at IS NULL AS is_applied
FROM statesvc.expectation_rules x ORDER BY x.carrier_id COLLATE "C", x.service COLLATE "C";

-- name: put_rules
-- State the rules of a carrier, or of one of its services; the carrier's unfinished shipments get their due times by them from the oldest
-- on.
INSERT INTO statesvc.expectation_rules AS x
    (carrier_id, service, revision, rules, changed_at, changed_by, why, rearm_recorded_at, rearm_shipment_id)
SELECT %(carrier_id)s, %(service)s, coalesce(max(o.revision), 0) + 1, %(rules)s::jsonb, statesvc.clock(), %(changed_by)s, %(why)s,
    'epoch', '00000000-0000-0000-0000-000000000000'
FROM statesvc.expectation_rules o
ON CONFLICT (carrier_id, service) DO UPDATE
SET revision = excluded.revision, rules = excluded.rules, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
    why = excluded.why, rearm_recorded_at = excluded.rearm_recorded_at, rearm_shipment_id = excluded.rearm_shipment_id
RETURNING x.revision;

-- name: newest_unfinished
-- Return the unfinished shipments before a place, the newest change first; of the others than the carrier's no state is read.
SELECT s.recorded_at, s.shipment_id, s.carrier_id,
    CASE WHEN %(carrier_id)s::text IN ('*', s.carrier_id) THEN s.state END AS state
FROM statesvc.shipment s
WHERE NOT s.terminal AND (s.recorded_at, s.shipment_id) < (%(before_recorded_at)s::timestamptz, %(before_shipment_id)s::uuid)
ORDER BY s.recorded_at DESC, s.shipment_id DESC LIMIT %(limit)s;

-- name: now
-- Return the clock of leases and schedules.
SELECT statesvc.clock();
