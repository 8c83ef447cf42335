-- name: shipments_of_number
-- The shipments that bear a number, the one asked for first, then the latest; one index range of a few rows.
SELECT s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.reason, s.status_since, s.terminal, s.flags, s.version,
    s.last_event_at, s.recorded_at, s.first_recorded_at, s.estimated_delivery, s.delivered_at, s.attempts, s.signed_by_event_id,
    t.sealed_key, t.head_hash, s.state
FROM statesvc.shipment s JOIN statesvc.stream t USING (shipment_id)
WHERE s.carrier_id = %(carrier_id)s AND s.number = %(number)s
ORDER BY s.shipment_id IS NOT DISTINCT FROM %(shipment_id)s::uuid DESC, s.discriminator IS NOT DISTINCT FROM %(discriminator)s::text DESC,
    s.last_event_at DESC, s.first_recorded_at DESC, s.shipment_id
LIMIT %(limit)s;

-- name: list_shipments
-- A page of shipments, the longest unchanged first: one that changes while the pages are read moves to the end, and is not missed. Looks
-- at `scan_max` shipments at most, so that a filter which fits few of them costs no more than a full page.
SELECT s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.reason, s.status_since, s.terminal, s.flags, s.version,
    s.last_event_at, s.recorded_at, s.first_recorded_at, s.estimated_delivery, s.delivered_at, s.attempts, s.signed_by_event_id,
    t.sealed_key, t.head_hash, s.state
FROM (
    SELECT * FROM statesvc.shipment
    WHERE (recorded_at, shipment_id) > (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid)
    ORDER BY recorded_at, shipment_id
    LIMIT %(scan_max)s
) s JOIN statesvc.stream t USING (shipment_id)
WHERE (%(status)s::text IS NULL OR s.status = %(status)s) AND (%(carrier_id)s::text IS NULL OR s.carrier_id = %(carrier_id)s)
ORDER BY s.recorded_at, s.shipment_id
LIMIT %(limit)s;

-- name: scan_end
-- The last shipment that `list_shipments` may have looked at; none when it reached the end.
SELECT s.recorded_at, s.shipment_id FROM statesvc.shipment s
WHERE (s.recorded_at, s.shipment_id) > (%(after_recorded_at)s::timestamptz, %(after_shipment_id)s::uuid)
ORDER BY s.recorded_at, s.shipment_id
OFFSET %(scan_max)s - 1 LIMIT 1;

-- name: sealed_part
-- The sealed personal part of one event; the shipment's own events only, so a short range of the primary key of few partitions.
SELECT e.sealed_part FROM statesvc.event e
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s AND e.event_id = %(event_id)s
LIMIT 1;
