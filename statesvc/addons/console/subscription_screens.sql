-- name: waiting
-- Return what waits for a subscription, as far as `count_max`: how many, since when the oldest, when the next try is due, and how many were
-- tried before.
SELECT count(*), extract(epoch FROM statesvc.clock() - min(o.created_at))::float8, min(o.available_at), count(*) FILTER (WHERE o.attempts > 0)
FROM (
    SELECT o.created_at, o.available_at, o.attempts FROM statesvc.outbox o WHERE o.subscription_id = %(subscription_id)s LIMIT %(count_max)s
) o;

-- name: waiting_list
-- Return the first of what waits: the change, how often it was tried, and when it is tried next.
SELECT s.carrier_id, s.tracking_number, s.discriminator, o.sequence, o.attempts, o.created_at, o.available_at, o.token IS NOT NULL AS is_under_way
FROM (
    SELECT o.* FROM statesvc.outbox o WHERE o.subscription_id = %(subscription_id)s LIMIT %(limit)s
) o
JOIN statesvc.shipment s ON s.shipment_id = o.shipment_id
ORDER BY o.created_at, o.shipment_id, o.sequence;
