-- name: is_erased
-- Whether the number was erased: it takes nothing any more.
SELECT EXISTS (SELECT FROM statesvc.shipment_references r
    WHERE r.number = %(number)s AND r.carrier_id = %(carrier_id)s AND r.erased_at IS NOT NULL);

-- name: lock_awaited
-- What is expected of a number; its row is locked, so that of two changes the second sees the first.
SELECT w.hours, w.awaited_at, w.due_at, w.observed_at FROM statesvc.awaited_number w
WHERE w.number = %(number)s AND w.carrier_id = %(carrier_id)s FOR UPDATE;

-- name: put_awaited
-- Awaits a number; other hours count from when it was first awaited, and after it was observed from now on.
INSERT INTO statesvc.awaited_number AS w (number, carrier_id, hours, awaited_at, due_at)
SELECT %(number)s, %(carrier_id)s, %(hours)s, t.at, t.at + make_interval(hours => %(hours)s) FROM (SELECT statesvc.clock() AS at) t
ON CONFLICT (number, carrier_id) DO UPDATE
SET hours = excluded.hours, observed_at = NULL,
    awaited_at = CASE WHEN w.observed_at IS NULL THEN w.awaited_at ELSE excluded.awaited_at END,
    due_at = CASE WHEN w.observed_at IS NULL THEN w.awaited_at + make_interval(hours => excluded.hours) ELSE excluded.due_at END
RETURNING w.hours, w.awaited_at, w.due_at, w.observed_at;

-- name: delete_awaited
-- Awaits a number no longer.
DELETE FROM statesvc.awaited_number w WHERE w.number = %(number)s AND w.carrier_id = %(carrier_id)s RETURNING w.hours;

-- name: never_heard_at
-- Whether it was observed and sealed by then that nothing had been heard of a number.
SELECT EXISTS (
    SELECT FROM statesvc.observation v JOIN statesvc.sealed_batch s ON s.batch_id = v.batch_id
    WHERE v.shipment_id = %(awaited_id)s AND s.first_index + v.ordinal < %(size)s);
