-- name: quotas
-- Return what operators gave each carrier, and how much of it is in use; a row a carrier that was ever named.
SELECT a.carrier_id, a.weight, a.in_flight_max, a.changed_at, a.changed_by, a.why, (
        SELECT count(*) FROM statesvc.inbox q WHERE q.token IS NOT NULL AND q.worker IS NOT NULL AND q.carrier_id = a.carrier_id
    ) AS in_flight
FROM statesvc.carrier_quota a
WHERE a.carrier_id = coalesce(%(carrier_id)s, a.carrier_id)
ORDER BY a.carrier_id;

-- name: set_quota
-- Set a carrier's weight and bound; the claim reads them.
INSERT INTO statesvc.carrier_quota AS a (carrier_id, weight, in_flight_max, changed_at, changed_by, why)
VALUES (%(carrier_id)s, %(weight)s, %(in_flight_max)s, statesvc.clock(), %(changed_by)s, %(why)s)
ON CONFLICT (carrier_id) DO UPDATE SET
    weight = excluded.weight, in_flight_max = excluded.in_flight_max, changed_at = excluded.changed_at,
    changed_by = excluded.changed_by, why = excluded.why;
