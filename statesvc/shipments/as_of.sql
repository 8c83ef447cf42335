-- name: size_at
-- How many entries were sealed at an instant.
SELECT c.tree_size FROM statesvc.checkpoint c WHERE c.created_at <= %(instant)s ORDER BY c.created_at DESC LIMIT 1;

-- name: sealed_events_of_number
-- The events of all shipments that bear a number, as far as they were sealed, shipment by shipment, oldest first.
SELECT e.shipment_id, e.canonical, t.sealed_key
FROM statesvc.stream t
JOIN statesvc.event e ON e.shipment_id = t.shipment_id AND e.recorded_at BETWEEN t.first_recorded_at AND t.recorded_at
JOIN statesvc.sealed_batch s ON s.batch_id = e.batch_id
WHERE t.carrier_id = %(carrier_id)s AND t.number = %(number)s AND s.first_index + e.ordinal < %(size)s
ORDER BY e.shipment_id, e.version;
