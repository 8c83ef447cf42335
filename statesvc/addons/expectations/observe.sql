-- name: try_alone
-- Take the lock that lets one process at a time observe; the others leave it to that one.
SELECT pg_try_advisory_xact_lock(hashtextextended('statesvc.expectations', 0));

-- name: due
-- Return the shipments that are due, the longest first. The cutoff is a subquery, so that the index can be used.
SELECT s.shipment_id, s.carrier_id FROM statesvc.shipment s
WHERE s.due_at <= (SELECT statesvc.clock()) ORDER BY s.due_at LIMIT %(limit)s;

-- name: not_now
-- Return those of these carriers of which nothing can be concluded now: it is held; its messages have waited for longer than a minute; or
-- it has fallen silent, by the rule of the alert. Of none while the log refuses to be sealed, and for four hours after it was forked: what
-- carriers said in the hours that a restore lost, they push again.
SELECT c.carrier_id FROM unnest(%(carrier_ids)s::text[]) AS c(carrier_id)
-- a carrier that never pushed has no lane
LEFT JOIN statesvc.lane l ON l.carrier_id = c.carrier_id
WHERE EXISTS (SELECT FROM statesvc.sealing_refusal)
    OR EXISTS (SELECT FROM statesvc.log_epoch e WHERE e.epoch > 1 AND e.started_at > statesvc.clock() - interval '4 hours')
    OR statesvc.held(c.carrier_id)
    OR EXISTS (SELECT FROM statesvc.inbox q
        WHERE q.carrier_id = l.carrier_id AND q.token IS NULL AND q.available_at >= l.low_water
            AND q.available_at < (SELECT statesvc.clock() - interval '1 minute'))
    OR c.carrier_id IN (SELECT n.carrier_id FROM statesvc.silent_carriers() n);

-- name: put_off
-- Look at the due shipments of these carriers later: spread over an hour, so that they do not all come at once then.
UPDATE statesvc.shipment s SET due_at = statesvc.clock() + interval '30 minutes' + random() * interval '1 hour'
WHERE s.ctid = ANY (ARRAY(
    SELECT d.ctid FROM statesvc.shipment d
    WHERE d.due_at <= (SELECT statesvc.clock()) AND d.carrier_id = ANY (%(carrier_ids)s::text[])
    ORDER BY d.due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED));

-- name: lock_due
-- Lock the streams of these shipments, but those that another transaction holds: they are due again at the next pass.
SELECT t.shipment_id FROM statesvc.stream t
WHERE t.shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY t.shipment_id FOR NO KEY UPDATE SKIP LOCKED;

-- name: read_due
-- Return what is known of these shipments, read after their streams were locked.
SELECT s.shipment_id, s.carrier_id, s.number, s.tracking_number, s.version, s.recorded_at, s.state
FROM statesvc.shipment s WHERE s.shipment_id = ANY (%(shipment_ids)b::uuid[]) AND s.due_at <= (SELECT statesvc.clock())
ORDER BY s.shipment_id;

-- name: insert_observations
-- Append observations, after `before` other entries of the batch.
INSERT INTO statesvc.observation (shipment_id, version, kind, recorded_at, since, batch_id, ordinal, canonical)
SELECT u.shipment_id, u.version, u.kind, %(recorded_at)s, u.since, %(batch_id)s, %(before)s + u.ordinal - 1, u.canonical
FROM unnest(%(shipment_ids)b::uuid[], %(versions)b::int[], %(kinds)b::text[], %(sinces)b::timestamptz[],
    %(canonicals)b::bytea[]) WITH ORDINALITY AS u(shipment_id, version, kind, since, canonical, ordinal);

-- name: save_observed
-- Save what is known of the shipments now, and when they are due again.
UPDATE statesvc.shipment s
SET flags = CASE WHEN u.flags = '' THEN '{}' ELSE string_to_array(u.flags, ',') END, due_at = u.due_at, state = u.state
FROM unnest(%(shipment_ids)b::uuid[], %(flags)b::text[], %(due_ats)b::timestamptz[], %(states)b::bytea[])
    AS u(shipment_id, flags, due_at, state)
WHERE s.shipment_id = u.shipment_id;
