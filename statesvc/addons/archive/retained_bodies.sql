-- name: retain_hot
-- Keep these bodies of a day beyond their partition.
INSERT INTO statesvc.body_retained (message_id, received_at, carrier_id, commitment, headers, sealed)
SELECT b.message_id, b.received_at, b.carrier_id, b.commitment, b.headers, b.sealed FROM statesvc.body b
WHERE b.received_at >= %(from)s::timestamptz AND b.received_at < %(until)s::timestamptz AND b.message_id = ANY (%(message_ids)b::uuid[])
ON CONFLICT (message_id) DO NOTHING;

-- name: retain_archived
-- Keep a body beyond its archive.
INSERT INTO statesvc.body_retained (message_id, received_at, carrier_id, commitment, headers, sealed)
VALUES (%(message_id)s, %(received_at)s, %(carrier_id)s, %(commitment)b, %(headers)s, %(sealed)b)
ON CONFLICT (message_id) DO NOTHING;

-- name: held_among
-- Return those of these messages that a legal hold keeps.
SELECT u.message_id FROM unnest(%(message_ids)b::uuid[], %(received_ats)b::timestamptz[]) AS u(message_id, received_at)
CROSS JOIN LATERAL (
    SELECT m.shipments FROM statesvc.message m
    WHERE m.message_id = u.message_id AND m.received_at = u.received_at
        AND m.received_at >= %(from)s::timestamptz AND m.received_at < %(until)s::timestamptz LIMIT 1
) m
WHERE statesvc.under_legal_hold(m.shipments);

-- name: prune_retained
-- Forget those of the next retained bodies that nothing requires any more: their message is settled, no legal hold stands on it, and the
-- archive of their day has them, or had them as long as it was to. Return where to go on.
WITH candidates AS MATERIALIZED (
    SELECT k.message_id, k.received_at FROM statesvc.body_retained k WHERE k.message_id > %(after)s ORDER BY k.message_id LIMIT %(limit)s
), gone AS (
    DELETE FROM statesvc.body_retained k USING candidates l
    WHERE k.message_id = l.message_id
        AND NOT EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = l.message_id)
        AND NOT EXISTS (SELECT FROM statesvc.dead_letter d
            WHERE d.message_id = l.message_id AND d.kind = 'message' AND d.resolved_at IS NULL)
        AND NOT EXISTS (SELECT FROM statesvc.message m
            WHERE m.message_id = l.message_id AND m.received_at = l.received_at AND statesvc.under_legal_hold(m.shipments))
        AND EXISTS (SELECT FROM statesvc.body_archive a
            WHERE a.day = (l.received_at AT TIME ZONE 'UTC')::date AND a.dropped_at IS NOT NULL AND (num_nulls(a.fault, a.lost_at) = 2 OR a.expired_at IS NOT NULL))
    RETURNING k.message_id
)
SELECT (SELECT count(*) FROM gone) AS pruned, (SELECT l.message_id FROM candidates l ORDER BY l.message_id DESC LIMIT 1) AS after;
