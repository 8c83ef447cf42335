-- name: lookup
-- Return the shipments that bear these numbers, by place, the latest of each number first; one of which nothing was said, but that
-- something is attached to or that is awaited, has the time of that alone; `terminal` says whether its hours are over. OFFSET 0: planned
-- for each number anew, whatever the tables held when it was prepared.
SELECT u.place, s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.status, s.reason, s.status_since, s.terminal, s.flags,
    s.version, s.last_event_at, s.recorded_at, s.first_recorded_at, s.estimated_delivery, s.service, s.delivered_at, s.attempts,
    s.signed_by_event_id, s.sealed_key, s.head_hash, s.last_entry_at, s.parcel_id, s.state
FROM unnest(%(places)b::int[], %(numbers)b::text[], %(carrier_ids)b::text[]) AS u(place, number, carrier_id)
CROSS JOIN LATERAL (
    SELECT h.shipment_id, h.carrier_id, h.tracking_number, h.discriminator, h.status, h.reason, h.status_since, h.terminal, h.flags,
        h.version, h.last_event_at, h.recorded_at, h.first_recorded_at, h.estimated_delivery, h.service, h.delivered_at, h.attempts,
        h.signed_by_event_id, t.sealed_key, t.head_hash, greatest(t.recorded_at, t.entries_until) AS last_entry_at, t.parcel_id, h.state
    FROM (SELECT * FROM statesvc.shipment x WHERE x.number = u.number AND x.carrier_id = coalesce(u.carrier_id, x.carrier_id) OFFSET 0) h
    CROSS JOIN LATERAL (SELECT * FROM statesvc.stream WHERE shipment_id = h.shipment_id OFFSET 0) t
    ORDER BY h.last_event_at DESC, h.shipment_id LIMIT %(each)s
) s
UNION ALL
SELECT u.place, NULL, r.carrier_id, r.number, NULL, NULL, NULL, NULL, r.never_heard, NULL, 0, NULL, r.at, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL
FROM unnest(%(places)b::int[], %(numbers)b::text[], %(carrier_ids)b::text[]) AS u(place, number, carrier_id)
CROSS JOIN LATERAL (
    SELECT o.carrier_id, o.number, max(o.at) AS at, bool_or(o.never_heard) AS never_heard FROM (
        SELECT x.carrier_id, x.number, x.changed_at AS at, false AS never_heard FROM statesvc.shipment_references x
        WHERE x.number = u.number AND x.sealed IS NOT NULL
        UNION ALL
        SELECT w.carrier_id, w.number, coalesce(w.observed_at, w.awaited_at), w.observed_at IS NOT NULL FROM statesvc.awaited_number w
        WHERE w.number = u.number
    ) o
    WHERE o.carrier_id = coalesce(u.carrier_id, o.carrier_id) GROUP BY o.carrier_id, o.number
) r
WHERE NOT EXISTS (SELECT FROM statesvc.shipment h WHERE h.number = r.number AND h.carrier_id = r.carrier_id);
