-- name: page
-- Return the newest notifications of a subscription before a position, of the newest `window`, with how each ended (`waiting`: not yet),
-- and when what waits is due. Those of some shipments, if any are named. Without those whose end may be in an archived month.
SELECT n.shipment_id, n.sequence, n.webhook_id, n.type, n.created_at, n.occurred_at, n.occurred_offset_seconds, n.epoch, n.carrier_id,
    n.tracking_number, n.from_status, n.to_status, g.skipped, g.from_sequence, g.to_sequence, n.observed, x.outcome, x.available_at
FROM (
    SELECT * FROM statesvc.notification w
    WHERE w.subscription_id = %(subscription_id)s AND w.created_at >= %(since)s::timestamptz
        AND (%(shipment_ids)s::uuid[] IS NULL OR w.shipment_id = ANY (%(shipment_ids)s::uuid[]))
        AND (%(at)s::timestamptz IS NULL OR (w.created_at, w.shipment_id, w.sequence) < (%(at)s::timestamptz, %(shipment_id)s::uuid, %(sequence)s::int))
    ORDER BY w.created_at DESC, w.shipment_id DESC, w.sequence DESC LIMIT %(window)s
) n
LEFT JOIN statesvc.notification_gap g
    ON g.shipment_id = n.shipment_id AND g.sequence = n.sequence AND g.subscription_id = n.subscription_id
CROSS JOIN LATERAL (
    SELECT CASE WHEN o.sequence IS NULL THEN coalesce((
        SELECT e.outcome FROM (
            SELECT a.outcome, a.recorded_at FROM statesvc.attempt a
            WHERE a.shipment_id = n.shipment_id AND a.sequence = n.sequence AND a.subscription_id = n.subscription_id
                AND a.recorded_at >= n.created_at AND a.outcome <> 'late'
            UNION ALL
            SELECT 'coalesced', c.recorded_at FROM statesvc.notification_gap c
            WHERE c.shipment_id = n.shipment_id AND c.subscription_id = n.subscription_id AND n.sequence = ANY (c.covers)
        ) e ORDER BY e.recorded_at DESC LIMIT 1), CASE WHEN NOT EXISTS (
            SELECT FROM statesvc.log_archive g WHERE g.dropped_at IS NOT NULL AND g.ends > n.created_at AND NOT EXISTS (
                SELECT FROM statesvc.log_resident r WHERE r.shipment_id = n.shipment_id AND r.month = g.month))
            THEN 'cancelled' END) ELSE 'waiting' END AS outcome, o.available_at
    FROM (SELECT) one
    LEFT JOIN statesvc.outbox o ON o.subscription_id = n.subscription_id AND o.shipment_id = n.shipment_id AND o.sequence = n.sequence
) x
WHERE (%(carrier_id)s::text IS NULL OR n.carrier_id = %(carrier_id)s)
    AND x.outcome IS NOT NULL AND (%(outcome)s::text IS NULL OR x.outcome = %(outcome)s)
ORDER BY n.created_at DESC, n.shipment_id DESC, n.sequence DESC LIMIT %(limit)s;

-- name: window_end
-- Return where that window ends; no row: it holds all that is left.
SELECT w.created_at, w.shipment_id, w.sequence FROM statesvc.notification w
WHERE w.subscription_id = %(subscription_id)s AND w.created_at >= %(since)s::timestamptz
    AND (%(shipment_ids)s::uuid[] IS NULL OR w.shipment_id = ANY (%(shipment_ids)s::uuid[]))
    AND (%(at)s::timestamptz IS NULL OR (w.created_at, w.shipment_id, w.sequence) < (%(at)s::timestamptz, %(shipment_id)s::uuid, %(sequence)s::int))
ORDER BY w.created_at DESC, w.shipment_id DESC, w.sequence DESC OFFSET %(window)s - 1 LIMIT 1;

-- name: place
-- Return which change of which shipment a webhook-id is of, and when it was recorded.
SELECT n.created_at, n.shipment_id, n.sequence FROM statesvc.notification n
WHERE n.webhook_id = %(webhook_id)s AND n.subscription_id = %(subscription_id)s;

-- name: shipments
-- Return the shipments that bear one of these numbers.
SELECT t.shipment_id FROM statesvc.stream t
WHERE t.number = ANY (%(numbers)s::text[]) AND (%(carrier_id)s::text IS NULL OR t.carrier_id = %(carrier_id)s) LIMIT 1000;

-- name: tries
-- Return the tries at these notifications, oldest first, with the entry that binds each (NULL: it has not ended) or the commitment to its
-- body.
SELECT n.webhook_id, n.shipment_id, n.sequence, x.number, x.outcome, x.status_code, x.duration_ms, x.started_at, x.recorded_at, n.type,
    n.carrier_id, n.tracking_number, x.last_number, coalesce(x.covering_id, n.webhook_id) AS covering_id, x.sealed_part, k.sealed_key,
    x.body_commitment, x.canonical
FROM unnest(%(shipment_ids)s::uuid[], %(sequences)s::int[]) AS u(shipment_id, sequence)
JOIN statesvc.notification n
    ON n.shipment_id = u.shipment_id AND n.sequence = u.sequence AND n.subscription_id = %(subscription_id)s::uuid
LEFT JOIN statesvc.stream k ON k.shipment_id = n.shipment_id
CROSS JOIN LATERAL (
    SELECT o.number, o.outcome, o.status_code, o.duration_ms, o.started_at, o.recorded_at, o.sealed_part, NULL::int AS last_number,
        NULL AS covering_id, o.body_commitment, NULL::bytea AS canonical
    FROM statesvc.open_attempt o
    WHERE o.subscription_id = n.subscription_id AND o.shipment_id = n.shipment_id AND o.sequence = n.sequence
    UNION ALL
    SELECT t.number, t.outcome, t.status_code, t.duration_ms, t.started_at, a.recorded_at, a.sealed_part, a.number, m.webhook_id, NULL, a.canonical
    FROM statesvc.attempt a
    JOIN statesvc.notification m ON m.shipment_id = a.shipment_id AND m.sequence = a.sequence AND m.subscription_id = a.subscription_id
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) t
    WHERE a.shipment_id = n.shipment_id AND a.sequence >= n.sequence AND a.subscription_id = n.subscription_id
        AND a.recorded_at >= n.created_at AND t.sequence = n.sequence
) x
ORDER BY n.shipment_id, n.sequence, x.number;
