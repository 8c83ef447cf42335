-- name: hot_bodies
-- Return those of these messages' bodies that are in the database: in their day's partition, or retained beyond it.
SELECT u.message_id, u.received_at, coalesce(b.carrier_id, k.carrier_id) AS carrier_id, coalesce(b.commitment, k.commitment) AS commitment,
    coalesce(b.headers, k.headers) AS headers, coalesce(b.sealed, k.sealed) AS sealed
FROM unnest(%(message_ids)b::uuid[], %(received_ats)b::timestamptz[]) AS u(message_id, received_at)
LEFT JOIN LATERAL (
    SELECT b.* FROM statesvc.body b WHERE b.message_id = u.message_id AND b.received_at = u.received_at LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT k.* FROM statesvc.body_retained k WHERE b.message_id IS NULL AND k.message_id = u.message_id LIMIT 1
) k ON true
WHERE b.message_id IS NOT NULL OR k.message_id IS NOT NULL;

-- name: archives_of_days
-- Return the files of those of these days that are archived.
SELECT a.day, a.file_name FROM statesvc.body_archive a
WHERE a.day = ANY (%(days)s::date[]) AND a.dropped_at IS NOT NULL AND a.expired_at IS NULL;

-- name: body_locations
-- Return where the body of each of these messages is. `erased` comes first: what is left of such a body opens with no key.
SELECT u.message_id,
    CASE
        WHEN m.settled AND (m.sealed_key IS NULL OR EXISTS (
            SELECT FROM statesvc.stream s WHERE s.shipment_id = ANY (m.shipments) AND s.sealed_key IS NULL)) THEN 'erased'
        WHEN b.found OR k.found THEN 'hot'
        WHEN a.expired_at IS NOT NULL THEN 'expired'
        WHEN a.day IS NOT NULL THEN 'archived'
        ELSE 'missing'
    END AS place
FROM unnest(%(message_ids)b::uuid[], %(received_ats)b::timestamptz[]) AS u(message_id, received_at)
LEFT JOIN LATERAL (
    SELECT true AS settled, m.sealed_key, m.shipments FROM statesvc.message m
    WHERE m.message_id = u.message_id AND m.received_at = u.received_at LIMIT 1
) m ON true
LEFT JOIN LATERAL (
    SELECT true AS found FROM statesvc.body b WHERE b.message_id = u.message_id AND b.received_at = u.received_at LIMIT 1
) b ON true
LEFT JOIN LATERAL (SELECT true AS found FROM statesvc.body_retained k WHERE k.message_id = u.message_id LIMIT 1) k ON true
LEFT JOIN statesvc.body_archive a ON a.day = (u.received_at AT TIME ZONE 'UTC')::date AND a.dropped_at IS NOT NULL;
