-- name: put
-- Stores a group of messages in one round trip. They are there for the workers when it answers; its commit waits for no disk, so
-- durable they are after `flush` only.
SELECT ordinal, message_id, duplicate
FROM statesvc.put(
    %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(digests)b::bytea[], %(sealed)b::bytea[], %(sealed_keys)b::bytea[],
    %(commitments)b::bytea[], (%(headers)b::text[])::jsonb[], %(body_bytes)b::int[])
WHERE (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
ORDER BY ordinal;

-- name: flush
-- Answers when all that was committed before is as durable as the server makes it, its standbys included: a transaction whose only
-- trace is a record of its own in the log. A row would do the same, and would have to be vacuumed.
SELECT pg_logical_emit_message(true, 'statesvc', '');
