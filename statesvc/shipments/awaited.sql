-- name: delete_awaited
-- Await a number no longer.
DELETE FROM statesvc.awaited_number w WHERE w.number = %(number)s AND w.carrier_id = %(carrier_id)s RETURNING w.hours;

-- name: sealed_entries
-- Return what was sealed by then about awaiting a number and hearing nothing of it, in the order of the log.
SELECT x.canonical FROM (
    SELECT a.batch_id, a.ordinal, a.canonical FROM statesvc.action a WHERE a.target = %(target)s AND a.verb = ANY (%(verbs)s::text[])
    UNION ALL
    SELECT v.batch_id, v.ordinal, v.canonical FROM statesvc.observation v WHERE v.shipment_id = %(awaited_id)s
) x
JOIN statesvc.sealed_batch s ON s.batch_id = x.batch_id
WHERE s.first_index + x.ordinal < %(size)s ORDER BY x.batch_id, x.ordinal;

-- name: heard_of_parcel
-- Return whether another source of the parcel had said something by then.
SELECT EXISTS (SELECT FROM statesvc.stream t WHERE t.parcel_id = %(parcel_id)s AND t.version > 0 AND t.first_recorded_at <= %(at)s);
