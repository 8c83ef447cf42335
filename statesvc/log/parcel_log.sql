-- name: link_streams
-- Say of which parcel these shipments are; what was said before stays.
UPDATE statesvc.stream s SET parcel_id = u.parcel_id
FROM unnest(%(shipment_ids)b::uuid[], %(parcel_ids)b::uuid[]) AS u(shipment_id, parcel_id)
WHERE s.shipment_id = u.shipment_id AND s.parcel_id IS NULL;

-- name: parcel_changes
-- Return the shipments of these parcels, each with its changes of status in the order of the log; `events`: how many of its events are
-- here, less than its version where some are archived.
SELECT p.parcel_id, s.shipment_id, s.carrier_id, s.number, s.version,
    (SELECT count(*) FROM statesvc.event e
        WHERE e.shipment_id = s.shipment_id AND e.recorded_at BETWEEN s.first_recorded_at AND s.recorded_at) AS events,
    t.sequence, t.from_status, t.to_status, n.occurred_at
FROM unnest(%(parcel_ids)b::uuid[]) AS p(parcel_id)
JOIN statesvc.stream s ON s.parcel_id = p.parcel_id
LEFT JOIN statesvc.transition t ON t.shipment_id = s.shipment_id AND t.recorded_at BETWEEN s.first_recorded_at AND s.recorded_at
LEFT JOIN statesvc.event n ON n.shipment_id = t.shipment_id AND n.version = t.sequence AND n.recorded_at = t.recorded_at
ORDER BY p.parcel_id, t.batch_id, t.ordinal;

-- name: parcels_of
-- Return the parcels of those of these shipments that are one of several.
SELECT s.shipment_id, s.parcel_id FROM statesvc.stream s
WHERE s.shipment_id = ANY (%(shipment_ids)b::uuid[]) AND s.parcel_id IS NOT NULL;

-- name: await_number
-- Wait for who is making the stream of a number, and keep others from making it until this transaction ends.
SELECT pg_advisory_xact_lock(uuid_hash_extended(%(shipment_id)s::uuid, 0));

-- name: lock_number
-- Lock the shipments of a number and those that name it as their parcel, in the order in which an append locks them.
SELECT s.shipment_id FROM statesvc.stream s
WHERE (s.carrier_id = %(carrier_id)s AND s.number = %(number)s) OR s.parcel_id = %(shipment_id)s
ORDER BY s.shipment_id FOR NO KEY UPDATE;

-- name: parcel_of
-- Return the parcel that a shipment id stands for, and the time.
SELECT coalesce((SELECT s.parcel_id FROM statesvc.stream s WHERE s.shipment_id = %(parcel_id)s), %(parcel_id)s::uuid), statesvc.clock();

-- name: link_number
-- Say of which parcel the shipments of a number are, and those that name it; NULL: of none. With the parcel's own shipment, if there is
-- one.
UPDATE statesvc.stream s SET parcel_id = %(parcel_id)s
WHERE ((s.carrier_id = %(carrier_id)s AND s.number = %(number)s) OR s.parcel_id = %(shipment_id)s
    OR s.shipment_id = %(parcel_id)s) AND s.parcel_id IS DISTINCT FROM %(parcel_id)s;
