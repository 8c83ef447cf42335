-- name: shipments_of_number
-- Return the shipments that bear a number, the one asked for first, then the latest; one index range of a few rows.
SELECT s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.reason, s.status_since, s.terminal, s.flags, s.version,
    s.last_event_at, s.recorded_at, s.first_recorded_at, s.estimated_delivery, s.service, s.delivered_at, s.attempts, s.signed_by_event_id,
    t.sealed_key, t.head_hash, greatest(t.recorded_at, t.entries_until) AS last_entry_at, t.parcel_id, s.state
FROM statesvc.shipment s JOIN statesvc.stream t USING (shipment_id)
WHERE s.carrier_id = %(carrier_id)s AND s.number = %(number)s
ORDER BY s.shipment_id IS NOT DISTINCT FROM %(shipment_id)s::uuid DESC, s.discriminator IS NOT DISTINCT FROM %(discriminator)s::text DESC,
    s.last_event_at DESC, s.first_recorded_at DESC, s.shipment_id
LIMIT %(limit)s;

-- name: other_sources
-- Return the shipments of other carriers and numbers that are the same parcel.
SELECT s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.terminal, s.version, s.last_event_at, s.recorded_at
FROM statesvc.stream t
JOIN statesvc.stream o ON o.parcel_id = t.parcel_id AND (o.carrier_id, o.number) <> (t.carrier_id, t.number)
JOIN statesvc.shipment s ON s.shipment_id = o.shipment_id
WHERE t.shipment_id = %(shipment_id)s
ORDER BY s.last_event_at DESC, s.shipment_id LIMIT %(limit)s;

-- name: recorded_outside
-- Return when contradictions that a shipment is part of were recorded, the first and the last (NULL: there are none), and when it was
-- erased: that may have been before anything was said of it.
SELECT min(c.recorded_at) AS conflict_since, max(c.recorded_at) AS conflict_until,
    (SELECT t.erased_at FROM statesvc.stream t WHERE t.shipment_id = %(shipment_id)s) AS erased_at
FROM (
    SELECT k.recorded_at FROM statesvc.conflict_key k WHERE k.shipment_id = %(shipment_id)s
    UNION ALL
    SELECT k.recorded_at FROM statesvc.conflict_key k WHERE k.claimed_shipment_id = %(shipment_id)s
) c;

-- name: number_of_shipment
-- Return what a shipment's id stands for.
SELECT t.carrier_id, t.number, t.discriminator FROM statesvc.stream t WHERE t.shipment_id = %(shipment_id)s;

-- name: sealed_part
-- Return the sealed personal part of one event; the shipment's own events only, so a short range of the primary key of few partitions.
SELECT e.sealed_part FROM statesvc.event e
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s AND e.event_id = %(event_id)s
LIMIT 1;
