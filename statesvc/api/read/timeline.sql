-- name: events_of_shipment
-- All events of one shipment in recorded order; nothing of it was recorded before `since`.
SELECT e.canonical, e.sealed_part FROM statesvc.event e
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at >= %(since)s
ORDER BY e.version;
