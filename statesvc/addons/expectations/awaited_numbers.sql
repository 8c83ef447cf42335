-- name: oldest_awaited
-- Return awaited numbers from a position on, in the order in which they are due; those of which it was observed that nothing was heard keep that
-- order for as long as their rows stay. The first condition is what the index can use.
SELECT w.carrier_id, w.number, w.hours, w.awaited_at,
    CASE WHEN w.observed_at IS NULL THEN w.due_at ELSE w.awaited_at + make_interval(hours => w.hours) END, w.observed_at, w.due_at
FROM statesvc.awaited_number w
WHERE w.due_at >= %(after_due_at)s::timestamptz
    AND (w.due_at, w.number, w.carrier_id) > (%(after_due_at)s::timestamptz, %(after_number)s::text, %(after_carrier_id)s::text)
    AND (w.observed_at IS NOT NULL) = %(never_heard)s::boolean AND (%(carrier_id)s::text IS NULL OR w.carrier_id = %(carrier_id)s)
ORDER BY w.due_at, w.number, w.carrier_id LIMIT %(limit)s;

-- name: newest_awaited
-- Return awaited numbers before a position, the last due first.
SELECT w.carrier_id, w.number, w.hours, w.awaited_at,
    CASE WHEN w.observed_at IS NULL THEN w.due_at ELSE w.awaited_at + make_interval(hours => w.hours) END, w.observed_at, w.due_at
FROM statesvc.awaited_number w
WHERE w.due_at <= %(after_due_at)s::timestamptz
    AND (w.due_at, w.number, w.carrier_id) < (%(after_due_at)s::timestamptz, %(after_number)s::text, %(after_carrier_id)s::text)
    AND (w.observed_at IS NOT NULL) = %(never_heard)s::boolean AND (%(carrier_id)s::text IS NULL OR w.carrier_id = %(carrier_id)s)
ORDER BY w.due_at DESC, w.number DESC, w.carrier_id DESC LIMIT %(limit)s;

-- name: never_heard_of_late
-- Count the numbers of which it was observed within a day that nothing was heard, as far as `count_max`; return when the last of them was; and of which
-- carriers they are. A row stays for 30 days after that, so the index leads to them.
SELECT count(*), extract(epoch FROM statesvc.clock() - max(o.observed_at))::float8, coalesce(array_agg(DISTINCT o.carrier_id), '{}')
FROM (
    SELECT w.observed_at, w.carrier_id FROM statesvc.awaited_number w
    WHERE w.due_at > (SELECT statesvc.clock()) + interval '29 days' AND w.due_at <= (SELECT statesvc.clock()) + interval '30 days'
        AND w.observed_at > (SELECT statesvc.clock()) - interval '1 day'
    LIMIT %(count_max)s
) o;

-- name: heard
-- Return those of these numbers of which something was said, by their carrier or by another source of the parcel.
SELECT u.carrier_id, u.number FROM unnest(%(carrier_ids)b::text[], %(numbers)b::text[], %(shipment_ids)b::uuid[]) AS u(carrier_id, number, shipment_id)
WHERE EXISTS (SELECT FROM statesvc.stream t WHERE t.carrier_id = u.carrier_id AND t.number = u.number AND t.version > 0)
    OR EXISTS (SELECT FROM statesvc.stream t WHERE t.parcel_id = u.shipment_id AND t.version > 0);

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
