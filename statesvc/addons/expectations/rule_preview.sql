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
