-- name: events_of_shipment
-- All events of one shipment; it was recorded from `since` until `until`, so that few partitions are looked at.
SELECT e.canonical, e.sealed_part, s.sealed_at, s.first_index + e.ordinal
FROM statesvc.event e
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = e.batch_id
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s;
