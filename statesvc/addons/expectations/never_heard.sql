-- name: try_alone
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
