-- name: put_back
-- Put messages and notifications back where they came from and resolve their dead letters, each once.
SELECT r.dead_letter_id, r.obstacle FROM statesvc.replay_dead_letters(%(ids)s::bigint[], %(actor)s, %(why)s, %(run_id)s) r;

-- name: put_back_fanouts
-- Return the changes that the notifications of these dead letters are about, by the leaf hash of the event, as their fan-out says it; NULL:
-- its entries are archived.
SELECT d.shipment_id, d.sequence, NULL::bytea, f.canonical, n.from_status, n.to_status, array_agg(d.subscription_id ORDER BY d.subscription_id), true,
    CASE WHEN d.sequence < 0 THEN n.type END
FROM statesvc.dead_letter d
JOIN statesvc.notification n
    ON n.shipment_id = d.shipment_id AND n.sequence = d.sequence AND n.subscription_id = d.subscription_id
LEFT JOIN LATERAL (
    SELECT w.canonical FROM statesvc.fanout w
    WHERE w.shipment_id = d.shipment_id AND w.sequence = d.sequence LIMIT 1
) f ON true
WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]) AND d.kind = 'notification'
GROUP BY d.shipment_id, d.sequence, n.from_status, n.to_status, n.type, f.canonical ORDER BY d.shipment_id, d.sequence;

-- name: obstacle
-- Return what stands in the way of replaying one dead letter.
SELECT statesvc.replay_obstacle(d) FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: verdicts
-- Return the outcome of dead letters that were put back. `failing`: a notification that was tried again, in vain so far.
SELECT d.dead_letter_id, CASE
    WHEN d.kind = 'notification' THEN coalesce(
        (SELECT CASE WHEN o.attempts > 0 AND o.token IS NULL THEN 'failing' ELSE 'waiting' END FROM statesvc.outbox o
            WHERE o.subscription_id = d.subscription_id AND o.shipment_id = d.shipment_id AND o.sequence = d.sequence),
        CASE WHEN EXISTS (SELECT FROM statesvc.dead_letter n WHERE n.webhook_id = d.webhook_id AND n.dead_letter_id > d.dead_letter_id)
            THEN 'buried' ELSE 'settled' END)
    WHEN EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = d.message_id) THEN 'waiting'
    WHEN EXISTS (SELECT FROM statesvc.dead_letter n WHERE n.message_id = d.message_id AND n.dead_letter_id > d.dead_letter_id
        AND n.kind = 'message' AND n.cause <> 'rejected_member') THEN 'buried'
    ELSE 'settled'
END AS verdict
FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]);

-- name: replayed_by_run
-- Return how many dead letters a run has replayed.
SELECT count(*) FROM statesvc.dead_letter d WHERE d.run_id = %(run_id)s;

-- name: resolve
-- Resolve dead letters that were read again.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'replayed', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]) AND d.resolved_at IS NULL
RETURNING d.dead_letter_id;

-- name: discard
-- Discard open dead letters, a bounded number, oldest first, without waiting for locks: what another operator replays meanwhile is left
-- alone.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id IN (
    SELECT o.dead_letter_id FROM statesvc.dead_letter o
    WHERE o.resolved_at IS NULL AND o.dead_letter_id <= %(up_to)s
        AND (%(ids)s::bigint[] IS NULL OR o.dead_letter_id = ANY (%(ids)s))
        AND (%(kind)s::text IS NULL OR o.kind = %(kind)s)
        AND (%(carrier_id)s::text IS NULL OR o.carrier_id = %(carrier_id)s)
        AND (%(cause)s::text IS NULL OR o.cause = %(cause)s)
        AND (%(since)s::timestamptz IS NULL OR o.created_at >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR o.created_at < %(until)s)
    ORDER BY o.dead_letter_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING d.dead_letter_id;
