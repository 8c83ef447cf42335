-- name: holder_of_event
-- Return whose event has this dedupe key, and from when to when that shipment's events were recorded.
SELECT k.shipment_id, t.first_recorded_at, t.recorded_at
FROM statesvc.event_key k JOIN statesvc.stream t ON t.shipment_id = k.shipment_id
WHERE k.carrier_id = %(carrier_id)s AND k.event_id = %(event_id)s;

-- name: position_of_event
-- Return the index of an event by its dedupe key, recorded from `since` until `until`; no index: it is not sealed yet.
SELECT s.first_index + e.ordinal
FROM statesvc.event_key k
JOIN statesvc.event e ON e.shipment_id = k.shipment_id AND e.recorded_at BETWEEN %(since)s AND %(until)s
    AND e.event_id = COALESCE(k.alias_of, k.event_id) AND e.carrier_id = k.carrier_id
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = e.batch_id
WHERE k.carrier_id = %(carrier_id)s AND k.event_id = %(event_id)s
LIMIT 1;
