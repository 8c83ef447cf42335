-- name: deletions
-- Return when each subscription was deleted.
SELECT o.target, (extract(epoch FROM o.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint
FROM statesvc.action o WHERE o.verb = %(verb)s;

-- name: notifications
-- Return what each notification of a part says that its fan-out binds.
SELECT n.shipment_id::text, n.sequence, n.subscription_id::text, n.webhook_id, n.type, n.from_status, n.to_status
FROM statesvc.notification n WHERE n.shipment_id BETWEEN %(low)s AND %(high)s;

-- name: open
-- Return what waits of a part in the outbox, and what ends with it.
SELECT o.shipment_id::text, c.sequence, o.subscription_id::text
FROM statesvc.outbox o
LEFT JOIN statesvc.notification_gap g
    ON g.shipment_id = o.shipment_id AND g.sequence = o.sequence AND g.subscription_id = o.subscription_id
    AND NOT EXISTS (
        SELECT FROM statesvc.attempt a
        WHERE a.shipment_id = o.shipment_id AND a.sequence = o.sequence AND a.subscription_id = o.subscription_id
            AND a.recorded_at > g.recorded_at AND a.outcome <> 'late')
CROSS JOIN LATERAL (SELECT o.sequence UNION ALL SELECT unnest(g.covers)) AS c(sequence)
WHERE o.shipment_id BETWEEN %(low)s AND %(high)s;

-- name: entries
-- Return the fan-outs and ends of a part, with when they were recorded.
SELECT 'fanout', f.canonical, (extract(epoch FROM f.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint
FROM statesvc.fanout f WHERE f.shipment_id BETWEEN %(low)s AND %(high)s
UNION ALL
SELECT 'attempt', a.canonical, (extract(epoch FROM a.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint
FROM statesvc.attempt a WHERE a.shipment_id BETWEEN %(low)s AND %(high)s;

-- name: reworded
-- Return the notifications that repeat their event otherwise than it is, and what differs.
SELECT x.* FROM (
    SELECT n.shipment_id::text, n.sequence, n.subscription_id::text, n.carrier_id <> e.carrier_id,
        n.tracking_number <> coalesce(e.printed_number, k.number), n.occurred_at <> e.occurred_at,
        n.occurred_offset_seconds <> e.occurred_offset_seconds, n.created_at <> e.recorded_at
    FROM statesvc.notification n
    JOIN statesvc.event e ON e.shipment_id = n.shipment_id AND e.version = n.sequence
    JOIN statesvc.stream k ON k.shipment_id = n.shipment_id
) AS x(shipment_id, sequence, subscription_id, carrier_id, tracking_number, occurred_at, offset_seconds, created_at)
WHERE x.carrier_id OR x.tracking_number OR x.occurred_at OR x.offset_seconds OR x.created_at
LIMIT %(most)s;
