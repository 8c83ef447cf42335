-- name: horizon
-- The newest dead letter there is.
SELECT coalesce(max(d.dead_letter_id), 0) FROM statesvc.dead_letter d;

-- name: plan
-- How many open letters a filter means, and what stands in the way of how many, by kind, cause and carrier.
SELECT d.kind, d.cause, d.carrier_id, statesvc.replay_obstacle(d) AS obstacle, count(*)
FROM statesvc.dead_letter d
WHERE d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s
    AND (%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s))
    AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
GROUP BY 1, 2, 3, 4;

-- name: next_letters
-- The next open letters that a filter means and that are replayed in one of these ways, oldest first.
SELECT d.dead_letter_id, d.kind, d.carrier_id, d.message_id
FROM statesvc.dead_letter d
WHERE d.resolved_at IS NULL AND d.dead_letter_id > %(after)s AND d.dead_letter_id <= %(up_to)s
    AND (%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s))
    AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    AND (d.kind = 'notification' OR d.carrier_id = ANY (%(carriers)s::text[]))
    AND CASE
        WHEN d.kind = 'code' THEN 'read_code'
        WHEN d.kind = 'notification' THEN 'send_again'
        WHEN d.cause = 'rejected_member' THEN 'read_again'
        ELSE 'put_back'
    END = ANY (%(ways)s::text[])
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: put_back
-- Puts messages and notifications back where they came from and resolves their letters, each once.
SELECT r.dead_letter_id, r.obstacle FROM statesvc.replay_dead_letters(%(ids)s::bigint[], %(actor)s, %(why)s, %(run_id)s) r;

-- name: obstacle
-- What stands in the way of replaying one letter.
SELECT statesvc.replay_obstacle(d) FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: verdicts
-- What became of letters that were put back. `failing`: a notification that was tried again, in vain so far.
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
-- How many letters a run has replayed.
SELECT count(*) FROM statesvc.dead_letter d WHERE d.run_id = %(run_id)s;

-- name: resolve
-- Resolves letters that were read again.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'replayed', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]) AND d.resolved_at IS NULL
RETURNING d.dead_letter_id;
