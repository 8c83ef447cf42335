-- name: put
-- Stores a group of messages in one round trip; those of the same identity as an earlier one are answered with its id.
SELECT ordinal, message_id, duplicate
FROM statesvc.put(
    %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(digests)b::bytea[], %(sealed)b::bytea[], %(sealed_keys)b::bytea[],
    %(commitments)b::bytea[], (%(headers)b::text[])::jsonb[], %(body_bytes)b::int[], %(etas)b::timestamptz[],
    %(receipts_until)b::timestamptz[])
ORDER BY ordinal;

-- name: bury
-- Moves messages that this transaction has just put to the dead letters: nobody else has seen them.
SELECT statesvc.bury_locked(u.message_id, u.cause, u.detail)
FROM unnest(%(message_ids)s::uuid[], %(causes)s::text[], %(details)s::text[]) AS u(message_id, cause, detail);

-- name: resolve_mapped
-- Resolves the dead letters of messages that did not map and now do.
UPDATE statesvc.dead_letter d SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s,
    why = 'it maps now: it was put into the inbox'
FROM statesvc.receipt r
WHERE r.digest = ANY (%(digests)s::bytea[]) AND d.kind = 'message' AND d.message_id = r.message_id AND d.resolved_at IS NULL
    AND d.cause = %(cause)s;
