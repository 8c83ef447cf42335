-- name: put
-- Store a group of messages in one round trip; those of the same identity as an earlier one are answered with its id.
SELECT ordinal, message_id, duplicate
FROM statesvc.put(
    %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(digests)b::bytea[], %(sealed)b::bytea[], %(sealed_keys)b::bytea[],
    %(commitments)b::bytea[], (%(headers)b::text[])::jsonb[], %(body_bytes)b::int[], %(etas)b::timestamptz[],
    %(receipts_until)b::timestamptz[])
ORDER BY ordinal;

-- name: bury
-- Move messages that this transaction has just put to the dead letters: nobody else has seen them.
SELECT statesvc.bury_locked(u.message_id, u.cause, u.detail)
FROM unnest(%(message_ids)s::uuid[], %(causes)s::text[], %(details)s::text[]) AS u(message_id, cause, detail);

-- name: resolve_mapped
-- Resolve the dead letters of messages that did not map and now do.
UPDATE statesvc.dead_letter d SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s,
    why = 'it maps now: it was put into the inbox'
FROM statesvc.receipt r
WHERE r.digest = ANY (%(digests)s::bytea[]) AND d.kind = 'message' AND d.message_id = r.message_id AND d.resolved_at IS NULL
    AND d.cause = %(cause)s;

-- name: lock_unprocessed
-- Lock those of these messages that wait in the inbox and are in no worker's hands.
SELECT q.message_id FROM statesvc.receipt r JOIN statesvc.inbox q ON q.message_id = r.message_id
WHERE r.digest = ANY (%(digests)s::bytea[]) AND q.token IS NULL
ORDER BY q.message_id FOR UPDATE OF q SKIP LOCKED;

-- name: states
-- Return where messages are: free (in the inbox), busy (there, with a worker), returning, dead (they never mapped), or done.
SELECT r.digest, r.message_id, CASE
    WHEN q.message_id IS NOT NULL THEN CASE WHEN q.token IS NULL THEN 'free' ELSE 'busy' END
    WHEN d.cause = 'returning' THEN 'returning'
    WHEN d.carrier_id = %(lane)s THEN 'dead'
    ELSE 'done' END
FROM statesvc.receipt r
LEFT JOIN statesvc.inbox q ON q.message_id = r.message_id
LEFT JOIN LATERAL (SELECT l.cause, l.carrier_id FROM statesvc.dead_letter l
    WHERE l.kind = 'message' AND l.message_id = r.message_id AND l.resolved_at IS NULL
    ORDER BY l.cause = 'returning' DESC LIMIT 1) d ON true
WHERE r.digest = ANY (%(digests)s::bytea[]);

-- name: forget_returned
-- Note that the broker has these messages again: their dead letters are resolved, and when they come back they are new.
WITH resolved AS (
    UPDATE statesvc.dead_letter d SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s,
        why = 'returned to its broker'
    WHERE d.kind = 'message' AND d.message_id = ANY (%(message_ids)s::uuid[]) AND d.resolved_at IS NULL
)
DELETE FROM statesvc.receipt r WHERE r.digest = ANY (%(digests)s::bytea[]);
