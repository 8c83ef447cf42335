-- name: recorded_span
-- Return from when to when the events of these shipments were recorded.
SELECT min(k.first_recorded_at), max(k.recorded_at) FROM statesvc.stream k WHERE k.shipment_id = ANY (%(shipment_ids)b::uuid[]);

-- name: histories
-- Return all events of each shipment up to the one that a notification names, oldest first; all were recorded from `since` until `until`.
SELECT u.shipment_id, u.sequence, e.canonical, e.sealed_part
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(shipment_id, sequence)
JOIN statesvc.stream k ON k.shipment_id = u.shipment_id
JOIN statesvc.event e ON e.shipment_id = u.shipment_id AND e.version <= u.sequence AND e.recorded_at >= k.first_recorded_at
    AND e.recorded_at BETWEEN %(since)s AND %(until)s
ORDER BY u.shipment_id, u.sequence, e.version;
