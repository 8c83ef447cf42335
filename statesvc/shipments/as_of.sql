-- name: size_at
-- Return how many entries were sealed at an instant.
SELECT c.tree_size FROM statesvc.checkpoint c WHERE c.created_at <= %(instant)s ORDER BY c.created_at DESC LIMIT 1;

-- name: recorded_span
-- Return since when shipments that bear a number were recorded, until when events of theirs were, and up to which month anything else.
SELECT min(t.first_recorded_at), max(t.recorded_at), max(greatest(t.recorded_at, t.entries_until)) FROM statesvc.stream t WHERE t.carrier_id = %(carrier_id)s AND t.number = %(number)s;

-- name: sealed_events_of_number
-- Return the events and observations of all shipments that bear a number, as far as they were sealed, shipment by shipment: the events
-- oldest first, then what was observed. `since`, `until` and `month_end` are those of the number: by them the planner leaves out all other
-- partitions.
SELECT x.shipment_id, x.canonical, t.sealed_key, greatest(t.recorded_at, t.entries_until)
FROM statesvc.stream t
CROSS JOIN LATERAL (
    SELECT e.shipment_id, e.version, e.batch_id, e.ordinal, e.canonical FROM statesvc.event e
    WHERE e.shipment_id = t.shipment_id AND e.recorded_at BETWEEN t.first_recorded_at AND t.recorded_at
        AND e.recorded_at BETWEEN %(since)s AND %(until)s
    UNION ALL
    SELECT v.shipment_id, NULL, v.batch_id, v.ordinal, v.canonical FROM statesvc.observation v
    WHERE v.shipment_id = t.shipment_id AND v.recorded_at >= t.first_recorded_at AND v.recorded_at >= %(since)s AND v.recorded_at < %(month_end)s
) x
JOIN statesvc.sealed_batch s ON s.batch_id = x.batch_id
WHERE t.carrier_id = %(carrier_id)s AND t.number = %(number)s AND s.first_index + x.ordinal < %(size)s
ORDER BY x.shipment_id, x.version;
