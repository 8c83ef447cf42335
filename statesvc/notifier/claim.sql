-- name: claim
-- Leases up to `limit` notifications, of one subscription at most what is left of its share. Of a shipment only the head: an
-- earlier sequence that is still in the outbox blocks. Subscriptions with the least in flight come first.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), lane AS MATERIALIZED (
    SELECT s.subscription_id, %(share)s::int - coalesce(b.busy, 0) AS free
    FROM statesvc.subscription s
    LEFT JOIN unnest(%(busy_ids)b::uuid[], %(busy_counts)b::int[]) AS b(subscription_id, busy) ON b.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL AND coalesce(b.busy, 0) < %(share)s::int
    ORDER BY coalesce(b.busy, 0), random()
), pick AS MATERIALIZED (
    SELECT q.row_id FROM lane l CROSS JOIN LATERAL (
        SELECT o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = l.subscription_id AND o.available_at <= (SELECT at FROM tick)
            AND NOT EXISTS (
                SELECT FROM statesvc.outbox e
                WHERE e.subscription_id = o.subscription_id AND e.shipment_id = o.shipment_id AND e.sequence < o.sequence)
        ORDER BY o.available_at, o.shipment_id LIMIT l.free FOR UPDATE OF o SKIP LOCKED
    ) q LIMIT %(limit)s
)
-- by ctid of the locked rows, not by a join: the planner overestimates `pick` and would scan the whole outbox
UPDATE statesvc.outbox o
SET token = %(token)s::uuid, worker = %(worker)s::text, attempts = o.attempts + 1,
    available_at = (SELECT at FROM tick) + make_interval(secs => %(lease_seconds)s::float8)
WHERE o.ctid = ANY (ARRAY(SELECT row_id FROM pick))
RETURNING o.subscription_id, o.shipment_id, o.sequence, o.attempts, (SELECT at FROM tick);

-- name: read_claimed
-- What there is to tell, to whom, signed with what, and the key that the attempt is sealed under (NULL once erased).
SELECT n.subscription_id, n.shipment_id, n.sequence, n.webhook_id, n.type, n.created_at, n.occurred_at, n.carrier_id, n.tracking_number,
    n.from_status, n.to_status, s.url, s.sealed_secrets, k.sealed_key
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(subscription_id, shipment_id, sequence)
JOIN statesvc.notification n
    ON n.shipment_id = u.shipment_id AND n.sequence = u.sequence AND n.subscription_id = u.subscription_id
JOIN statesvc.subscription s ON s.subscription_id = u.subscription_id
LEFT JOIN statesvc.stream k ON k.shipment_id = u.shipment_id;

-- name: release
-- Gives back what these tokens still hold, uncharged (a notifier that shuts down).
UPDATE statesvc.outbox SET token = NULL, worker = NULL, available_at = statesvc.clock(), attempts = attempts - 1
WHERE token = ANY (%(tokens)b::uuid[]);

-- name: next_due
-- Seconds until something becomes available that is not yet (backoff, end of a lease); NULL: nothing waits.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
)
SELECT extract(epoch FROM min(d.due) - (SELECT at FROM tick))::float8
FROM statesvc.subscription s CROSS JOIN LATERAL (
    SELECT o.available_at AS due FROM statesvc.outbox o
    WHERE o.subscription_id = s.subscription_id AND o.available_at > (SELECT at FROM tick)
    ORDER BY o.available_at LIMIT 1
) d
WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL;

-- name: purge
-- Forgets what waits for deleted subscriptions, except what is being sent.
DELETE FROM statesvc.outbox o WHERE o.ctid = ANY (ARRAY(
    SELECT q.ctid FROM statesvc.subscription s JOIN statesvc.outbox q ON q.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NOT NULL AND q.token IS NULL LIMIT %(limit)s FOR UPDATE OF q SKIP LOCKED));
