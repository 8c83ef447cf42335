-- name: events_of_shipment
-- All events of one shipment; it was recorded from `since` until `until`, so that few partitions are looked at.
SELECT e.canonical, e.sealed_part FROM statesvc.event e
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s;
