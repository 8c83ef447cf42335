-- name: subscribed
-- The live subscriptions that may match a change of these shipments.
SELECT s.subscription_id, s.carriers, s.statuses, s.types, s.shipments
FROM statesvc.subscription s
WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL
    AND (s.carriers IS NULL OR s.carriers && %(carrier_ids)b::text[])
    AND (s.shipments IS NULL OR s.shipments && %(shipments)b::text[]);

-- name: write_notifications
-- The notifications, and their rows in the outbox.
WITH written AS (
    INSERT INTO statesvc.notification
        (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status,
        occurred_offset_seconds, epoch)
    SELECT u.shipment_id, u.sequence, u.subscription_id, u.created_at, u.occurred_at, statesvc.webhook_id(u.subscription_id, u.leaf_hash),
        u.type, u.carrier_id, u.tracking_number, u.from_status, u.to_status, u.occurred_offset_seconds, nullif(%(epoch)s::int, 1)
    FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(types)b::text[], %(carrier_ids)b::text[],
        %(tracking_numbers)b::text[], %(from_statuses)b::text[], %(to_statuses)b::text[], %(created_ats)b::timestamptz[],
        %(occurred_ats)b::timestamptz[], %(occurred_offsets)b::int[], %(leaf_hashes)b::bytea[])
        AS u(subscription_id, shipment_id, sequence, type, carrier_id, tracking_number, from_status, to_status, created_at, occurred_at,
            occurred_offset_seconds, leaf_hash)
    RETURNING subscription_id, shipment_id, sequence
), tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
)
INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at)
-- behind one that waits for its retry it waits too: claims need not consider it before
SELECT w.subscription_id, w.shipment_id, w.sequence, greatest(t.at, (
        SELECT o.available_at FROM statesvc.outbox o
        WHERE o.subscription_id = w.subscription_id AND o.shipment_id = w.shipment_id AND o.token IS NULL
        ORDER BY o.sequence DESC LIMIT 1)), t.at
FROM written w CROSS JOIN tick t;
