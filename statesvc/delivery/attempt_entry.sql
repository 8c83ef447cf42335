-- name: insert_open_attempts
-- Store tries at notifications that have not ended.
INSERT INTO statesvc.open_attempt
    (subscription_id, shipment_id, sequence, number, started_at, recorded_at, duration_ms, outcome, status_code, body_commitment, worker,
     sealed_part)
SELECT u.subscription_id, u.shipment_id, u.sequence, u.number, u.started_at, %(now)s, u.duration_ms, u.outcome, u.status_code,
    u.body_commitment, %(worker)s, u.sealed_part
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(numbers)b::int[], %(started_ats)b::timestamptz[],
    %(durations_ms)b::int[], %(outcomes)b::text[], %(status_codes)b::int[], %(body_commitments)b::bytea[], %(sealed_parts)b::bytea[])
    AS u(subscription_id, shipment_id, sequence, number, started_at, duration_ms, outcome, status_code, body_commitment, sealed_part)
ON CONFLICT (subscription_id, shipment_id, sequence, number) DO NOTHING;

-- name: take_open_attempts
-- Take the tries at these notifications, and at those that end with them: what a notification stands for, unless an entry since says that
-- it ended. One row for each try, and one without a try for each covered notification that has none.
WITH ended AS (
    SELECT * FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[])
        AS u(subscription_id, shipment_id, sequence)
), wanted AS MATERIALIZED (
    SELECT e.*, e.sequence AS of_sequence FROM ended e
    UNION ALL
    SELECT e.*, c.sequence FROM ended e
    JOIN statesvc.notification_gap g
        ON g.shipment_id = e.shipment_id AND g.sequence = e.sequence AND g.subscription_id = e.subscription_id
    CROSS JOIN unnest(g.covers) AS c(sequence)
    WHERE NOT EXISTS (
        SELECT FROM statesvc.attempt a
        WHERE a.shipment_id = e.shipment_id AND a.sequence = e.sequence AND a.subscription_id = e.subscription_id
            AND a.recorded_at > g.recorded_at AND a.outcome <> 'late')
), taken AS (
    DELETE FROM statesvc.open_attempt o USING wanted w
    WHERE o.subscription_id = w.subscription_id AND o.shipment_id = w.shipment_id AND o.sequence = w.of_sequence
    RETURNING o.*
)
SELECT w.subscription_id, w.shipment_id, w.sequence, w.of_sequence, n.webhook_id, t.number, t.started_at, t.duration_ms, t.outcome,
    t.status_code, t.body_commitment, t.sealed_part, g.skipped, g.from_sequence, g.to_sequence
FROM wanted w
LEFT JOIN taken t ON t.subscription_id = w.subscription_id AND t.shipment_id = w.shipment_id AND t.sequence = w.of_sequence
LEFT JOIN statesvc.notification n
    ON n.shipment_id = w.shipment_id AND n.sequence = w.of_sequence AND n.subscription_id = w.subscription_id
LEFT JOIN statesvc.notification_gap g
    ON g.shipment_id = w.shipment_id AND g.sequence = w.of_sequence AND g.subscription_id = w.subscription_id
ORDER BY w.of_sequence, t.number;

-- name: tried
-- Return those of these notifications at which there were tries, or at what they stand for.
SELECT u.subscription_id, u.shipment_id, u.sequence, n.webhook_id, k.sealed_key, g.skipped, g.from_sequence, g.to_sequence
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(subscription_id, shipment_id, sequence)
JOIN statesvc.notification n
    ON n.shipment_id = u.shipment_id AND n.sequence = u.sequence AND n.subscription_id = u.subscription_id
LEFT JOIN statesvc.notification_gap g
    ON g.shipment_id = u.shipment_id AND g.sequence = u.sequence AND g.subscription_id = u.subscription_id
LEFT JOIN statesvc.stream k ON k.shipment_id = u.shipment_id
WHERE EXISTS (
    SELECT FROM statesvc.open_attempt o
    WHERE o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id
        AND (o.sequence = u.sequence OR o.sequence = ANY (g.covers)));

-- name: insert_attempts
-- Append ends of notifications in their order.
INSERT INTO statesvc.attempt
    (shipment_id, sequence, subscription_id, recorded_at, batch_id, ordinal, outcome, number, started_at, duration_ms, status_code, tries,
     canonical, sealed_part)
SELECT u.shipment_id, u.sequence, u.subscription_id, %(recorded_at)s, %(batch_id)s, u.ordinal - 1, u.outcome, u.number,
    u.started_at, u.duration_ms, u.status_code, u.tries::jsonb, u.canonical, u.sealed_part
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(outcomes)b::text[],
    %(numbers)b::int[], %(started_ats)b::timestamptz[], %(durations_ms)b::int[], %(status_codes)b::int[], %(tries)b::text[],
    %(canonicals)b::bytea[], %(sealed_parts)b::bytea[])
    WITH ORDINALITY AS u(subscription_id, shipment_id, sequence, outcome, number, started_at, duration_ms, status_code, tries, canonical, sealed_part,
        ordinal);
