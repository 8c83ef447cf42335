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

-- name: try_alone_with_awaited
-- Take the lock that lets one process at a time do this.
SELECT pg_try_advisory_xact_lock(hashtextextended('statesvc.expectations.never_heard', 0));

-- name: due
-- Return the awaited numbers whose hours are over, the longest first. The cutoff is a subquery, so that the index can be used.
SELECT w.carrier_id, w.number, w.hours, w.awaited_at, w.observed_at IS NOT NULL FROM statesvc.awaited_number w
WHERE w.due_at <= (SELECT statesvc.clock()) ORDER BY w.due_at LIMIT %(limit)s;

-- name: put_off
-- Ask again later about the due numbers of these carriers that were not observed: spread over an hour, so that they do not all come at once
-- then.
UPDATE statesvc.awaited_number w SET due_at = statesvc.clock() + interval '30 minutes' + random() * interval '1 hour'
WHERE (w.number, w.carrier_id) IN (
    SELECT d.number, d.carrier_id FROM statesvc.awaited_number d
    WHERE d.due_at <= (SELECT statesvc.clock()) AND d.carrier_id = ANY (%(waiting)s::text[]) AND d.observed_at IS NULL
    ORDER BY d.due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED);

-- name: lock_due
-- Lock the rows of these numbers, but those that somebody changes now.
SELECT w.carrier_id, w.number FROM unnest(%(carrier_ids)b::text[], %(numbers)b::text[]) AS u(carrier_id, number)
JOIN statesvc.awaited_number w ON w.number = u.number AND w.carrier_id = u.carrier_id
WHERE w.due_at <= (SELECT statesvc.clock()) ORDER BY w.number, w.carrier_id FOR NO KEY UPDATE OF w SKIP LOCKED;

-- name: lock_streams
-- Lock what there is of streams that stand for these numbers, as an append would.
SELECT t.shipment_id FROM statesvc.stream t
WHERE t.shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY t.shipment_id FOR NO KEY UPDATE SKIP LOCKED;

-- name: settle
-- Await these numbers no longer.
DELETE FROM statesvc.awaited_number w
USING unnest(%(carrier_ids)b::text[], %(numbers)b::text[]) AS u(carrier_id, number)
WHERE w.number = u.number AND w.carrier_id = u.carrier_id;

-- name: note_observed
-- Note that nothing was heard of these numbers; their rows say so for a while.
UPDATE statesvc.awaited_number w SET observed_at = %(recorded_at)s, due_at = %(recorded_at)s::timestamptz + make_interval(days => %(shown_days)s)
FROM unnest(%(carrier_ids)b::text[], %(numbers)b::text[]) AS u(carrier_id, number)
WHERE w.number = u.number AND w.carrier_id = u.carrier_id;
