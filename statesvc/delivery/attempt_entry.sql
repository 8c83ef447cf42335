-- name: insert_attempts
-- Appends attempts in their order.
INSERT INTO statesvc.attempt
    (shipment_id, sequence, subscription_id, number, recorded_at, started_at, batch_id, ordinal, webhook_id, outcome, status_code,
     duration_ms, leaf_hash, canonical, sealed_part)
SELECT u.shipment_id, u.sequence, u.subscription_id, u.number, %(recorded_at)s, u.started_at, %(batch_id)s, u.ordinal - 1, u.webhook_id,
    u.outcome, u.status_code, u.duration_ms, u.leaf_hash, u.canonical, u.sealed_part
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(subscription_ids)b::uuid[], %(numbers)b::int[],
    %(started_ats)b::timestamptz[], %(webhook_ids)b::text[], %(outcomes)b::text[], %(status_codes)b::int[], %(durations_ms)b::int[],
    %(leaf_hashes)b::bytea[], %(canonicals)b::bytea[], %(sealed_parts)b::bytea[])
    WITH ORDINALITY AS u(shipment_id, sequence, subscription_id, number, started_at, webhook_id, outcome, status_code, duration_ms,
        leaf_hash, canonical, sealed_part, ordinal);
