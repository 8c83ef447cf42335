-- name: hold
-- Lock what still waits of these notifications, in key order. With the token that holds it now, of this notifier or another;
-- whether its receiver is known to fail; and whether something else waits for the same shipment.
SELECT o.subscription_id, o.shipment_id, o.sequence, o.token,
    EXISTS (SELECT FROM statesvc.subscription_failing f WHERE f.subscription_id = o.subscription_id),
    EXISTS (
        SELECT FROM statesvc.outbox n
        WHERE n.subscription_id = o.subscription_id AND n.shipment_id = o.shipment_id AND n.sequence <> o.sequence)
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(subscription_id, shipment_id, sequence)
JOIN statesvc.outbox o
    ON o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence
ORDER BY o.subscription_id, o.shipment_id, o.sequence FOR UPDATE OF o;

-- name: reschedule
-- Give held notifications back, each available again after its delay.
UPDATE statesvc.outbox o
SET token = NULL, worker = NULL, available_at = %(now)s::timestamptz + make_interval(secs => u.delay)
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(delays)b::float8[])
    AS u(subscription_id, shipment_id, sequence, delay)
WHERE o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence;

-- name: defer_followers
-- Defer what waits behind a notification that is tried again later, except what is under way: it is not due before it.
UPDATE statesvc.outbox o
SET available_at = %(now)s::timestamptz + make_interval(secs => u.delay)
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[], %(delays)b::float8[])
    AS u(subscription_id, shipment_id, sequence, delay)
WHERE o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id AND o.sequence > u.sequence AND o.token IS NULL
    AND o.available_at < %(now)s::timestamptz + make_interval(secs => u.delay);

-- name: postpone
-- Note that receivers asked not to be called for a while; every notifier follows that. In the order of their ids.
INSERT INTO statesvc.throttle AS h (subscription_id, not_before)
SELECT u.subscription_id, %(now)s::timestamptz + make_interval(secs => max(u.seconds))
FROM unnest(%(subscription_ids)b::uuid[], %(seconds)b::float8[]) AS u(subscription_id, seconds)
GROUP BY u.subscription_id ORDER BY u.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET not_before = greatest(h.not_before, EXCLUDED.not_before);

-- name: finish
-- Take held notifications out of the outbox.
DELETE FROM statesvc.outbox o
USING unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(subscription_id, shipment_id, sequence)
WHERE o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence;

-- name: bury
-- Make dead letters of notifications that their subscriber never accepted.
INSERT INTO statesvc.dead_letter
    (kind, cause, carrier_id, created_at, webhook_id, detail, attempts, worker, subscription_id, shipment_id, sequence)
SELECT 'notification', %(cause)s, u.carrier_id, %(now)s, u.webhook_id, u.detail, u.attempts, %(worker)s, u.subscription_id, u.shipment_id,
    u.sequence
FROM unnest(%(carrier_ids)b::text[], %(webhook_ids)b::text[], %(details)b::text[], %(attempts)b::int[], %(subscription_ids)b::uuid[],
        %(shipment_ids)b::uuid[], %(sequences)b::int[])
    AS u(carrier_id, webhook_id, detail, attempts, subscription_id, shipment_id, sequence)
ORDER BY u.webhook_id
ON CONFLICT (webhook_id) WHERE kind = 'notification' AND resolved_at IS NULL DO NOTHING;
