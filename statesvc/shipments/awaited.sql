-- name: is_erased
-- Return whether the number was erased: it takes nothing any more.
SELECT EXISTS (SELECT FROM statesvc.shipment_references r
    WHERE r.number = %(number)s AND r.carrier_id = %(carrier_id)s AND r.erased_at IS NOT NULL);

-- name: lock_awaited
-- Lock and return what is expected of a number; its row is locked, so that of two changes the second sees the first.
SELECT w.hours, w.awaited_at, w.due_at, w.observed_at FROM statesvc.awaited_number w
WHERE w.number = %(number)s AND w.carrier_id = %(carrier_id)s FOR UPDATE;

-- name: put_awaited
-- Await a number; other hours count from when it was first awaited, and after it was observed from now on.
INSERT INTO statesvc.awaited_number AS w (number, carrier_id, hours, awaited_at, due_at)
SELECT %(number)s, %(carrier_id)s, %(hours)s, t.at, t.at + make_interval(hours => %(hours)s) FROM (SELECT statesvc.clock() AS at) t
ON CONFLICT (number, carrier_id) DO UPDATE
SET hours = excluded.hours, observed_at = NULL,
    awaited_at = CASE WHEN w.observed_at IS NULL THEN w.awaited_at ELSE excluded.awaited_at END,
    due_at = CASE WHEN w.observed_at IS NULL THEN w.awaited_at + make_interval(hours => excluded.hours) ELSE excluded.due_at END
RETURNING w.hours, w.awaited_at, w.due_at, w.observed_at;

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
