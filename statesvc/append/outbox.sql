-- name: read_live_subscriptions
-- Return the live subscriptions that may match a change of these shipments.
SELECT s.subscription_id, s.carriers, s.statuses, s.types, s.shipments, s.parcels
FROM statesvc.subscription s
WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL
    AND (s.carriers IS NULL OR s.carriers && %(carrier_ids)b::text[])
    AND (s.shipments IS NULL OR s.shipments && %(shipments)b::text[]);

-- name: write_notifications
-- Write the notifications, and their rows in the outbox.
WITH due AS MATERIALIZED (
    SELECT * FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(types)b::text[],
        %(carrier_ids)b::text[], %(tracking_numbers)b::text[], %(from_statuses)b::text[], %(to_statuses)b::text[],
        %(created_ats)b::timestamptz[], %(occurred_ats)b::timestamptz[], %(occurred_offsets)b::int[], %(leaf_hashes)b::bytea[],
        %(received_ats)b::timestamptz[], %(traceparents)b::text[], %(observed)b::text[])
        AS u(subscription_id, shipment_id, sequence, type, carrier_id, tracking_number, from_status, to_status, created_at, occurred_at,
            occurred_offset_seconds, leaf_hash, received_at, traceparent, observed)
), written AS (
    INSERT INTO statesvc.notification
        (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status,
        occurred_offset_seconds, epoch, observed)
    SELECT d.shipment_id, d.sequence, d.subscription_id, d.created_at, d.occurred_at, statesvc.webhook_id(d.subscription_id, d.leaf_hash),
        d.type, d.carrier_id, d.tracking_number, d.from_status, d.to_status, d.occurred_offset_seconds, nullif(%(epoch)s::int, 1), d.observed::jsonb
    FROM due d
), tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
)
INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at, received_at, traceparent)
-- behind one that waits for its retry it waits too: claims need not consider it before
SELECT d.subscription_id, d.shipment_id, d.sequence, greatest(t.at, (
        SELECT o.available_at FROM statesvc.outbox o
        WHERE o.subscription_id = d.subscription_id AND o.shipment_id = d.shipment_id AND o.token IS NULL
        ORDER BY o.sequence DESC LIMIT 1)), t.at, d.received_at, d.traceparent
FROM due d CROSS JOIN tick t;
