-- name: events_of_shipment
-- Return all events of one shipment; it was recorded from `since` until `until`, so that few partitions are looked at. OFFSET 0: it is
-- planned for these each time, and to weigh a merge with all batches the planner reads both ends of their keys.
SELECT e.canonical, e.sealed_part, s.sealed_at, s.first_index + e.ordinal
FROM statesvc.event e
LEFT JOIN LATERAL (SELECT * FROM statesvc.sealed_batch WHERE batch_id = e.batch_id OFFSET 0) s ON true
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s;
