-- name: histories
-- All events of each shipment up to the one that a notification names, oldest first.
SELECT u.shipment_id, u.sequence, e.canonical, e.sealed_part
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(shipment_id, sequence)
JOIN statesvc.stream k ON k.shipment_id = u.shipment_id
JOIN statesvc.event e ON e.shipment_id = u.shipment_id AND e.version <= u.sequence AND e.recorded_at >= k.first_recorded_at
ORDER BY u.shipment_id, u.sequence, e.version;
