-- name: is_due
-- Return whether there is anything to do: a change of rules that is not applied to all, a shipment or an awaited number that is due. The earliest
-- due times are read, each from the end of its index: of a comparison the planner expects a third of the rows, and reads the table instead.
SELECT EXISTS (SELECT FROM statesvc.expectation_rules x WHERE x.rearm_recorded_at IS NOT NULL)
    OR coalesce(
        least((SELECT min(s.due_at) FROM statesvc.shipment s), (SELECT min(w.due_at) FROM statesvc.awaited_number w)) <= statesvc.clock(), false);

-- name: try_alone
-- Take the lock that lets one process at a time do this.
SELECT pg_try_advisory_xact_lock(hashtextextended('statesvc.expectations.rearm', 0));

-- name: unapplied
-- Return a change of rules whose shipments have not all been given their due times by it, but not before every append that may have read
-- the rules before it has ended.
SELECT x.carrier_id, x.service, x.rearm_recorded_at, x.rearm_shipment_id FROM statesvc.expectation_rules x
WHERE x.rearm_recorded_at IS NOT NULL AND x.changed_at < statesvc.clock() - make_interval(secs => %(settle_seconds)s)
ORDER BY x.revision LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: unfinished
-- Return the next unfinished shipments of all carriers, the longest unchanged first: one that changes meanwhile has its due time from its
-- append.
SELECT s.carrier_id, s.shipment_id, s.version, s.recorded_at, s.due_at, s.state FROM statesvc.shipment s
WHERE NOT s.terminal AND (s.recorded_at, s.shipment_id) > (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid)
ORDER BY s.recorded_at, s.shipment_id LIMIT %(limit)s;

-- name: set_due
-- Give shipments their due times; one that an append has written since has its own by the new rules.
UPDATE statesvc.shipment s SET due_at = u.due_at
FROM unnest(%(shipment_ids)b::uuid[], %(versions)b::int[], %(due_ats)b::timestamptz[]) AS u(shipment_id, version, due_at)
WHERE s.shipment_id = u.shipment_id AND s.version = u.version;

-- name: applied_to
-- Note up to where the change is applied; NULL: to all.
UPDATE statesvc.expectation_rules x SET rearm_recorded_at = %(recorded_at)s, rearm_shipment_id = %(shipment_id)s
WHERE x.carrier_id = %(carrier_id)s AND x.service = %(service)s;
