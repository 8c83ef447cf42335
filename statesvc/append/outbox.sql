-- name: write_notifications
-- One notification for each live subscription that a change matches, and its row in the outbox. Paused subscriptions collect.
WITH change AS (
    SELECT * FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(types)b::text[], %(carrier_ids)b::text[],
        %(tracking_numbers)b::text[], %(from_statuses)b::text[], %(to_statuses)b::text[], %(occurred_ats)b::timestamptz[],
        %(occurred_offsets)b::int[], %(leaf_hashes)b::bytea[])
        AS u(shipment_id, sequence, type, carrier_id, tracking_number, from_status, to_status, occurred_at, occurred_offset_seconds,
            leaf_hash)
), tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at, (SELECT nullif(max(e.epoch), 1) FROM statesvc.log_epoch e) AS epoch
), written AS (
    INSERT INTO statesvc.notification
        (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status,
        occurred_offset_seconds, epoch)
    SELECT c.shipment_id, c.sequence, s.subscription_id, t.at, c.occurred_at,
        statesvc.webhook_id(s.subscription_id, c.leaf_hash), c.type, c.carrier_id, c.tracking_number, c.from_status, c.to_status, c.occurred_offset_seconds, t.epoch
    FROM statesvc.subscription s
    JOIN change c ON (s.carriers IS NULL OR c.carrier_id = ANY (s.carriers))
        AND (s.statuses IS NULL OR c.to_status = ANY (s.statuses))
        AND (s.types IS NULL OR c.type = ANY (s.types))
        AND (s.shipments IS NULL OR EXISTS (
            SELECT FROM statesvc.stream k WHERE k.shipment_id = c.shipment_id AND k.carrier_id || '/' || k.number = ANY (s.shipments)))
    CROSS JOIN tick t
    WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL
    ON CONFLICT DO NOTHING
    RETURNING subscription_id, shipment_id, sequence, created_at
), queued AS (
    INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at)
    -- behind one that waits for its retry it waits too: claims need not consider it before
    SELECT w.subscription_id, w.shipment_id, w.sequence, greatest(w.created_at, (
            SELECT o.available_at FROM statesvc.outbox o
            WHERE o.subscription_id = w.subscription_id AND o.shipment_id = w.shipment_id AND o.token IS NULL
            ORDER BY o.sequence DESC LIMIT 1)), w.created_at
    FROM written w
    RETURNING sequence
)
SELECT count(*) FROM queued;
