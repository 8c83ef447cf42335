-- name: put
-- Stores a group of messages in one round trip; in autocommit the answer means that they are durable.
SELECT ordinal, message_id, duplicate
FROM statesvc.put(
    %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(digests)b::bytea[], %(sealed)b::bytea[], %(sealed_keys)b::bytea[],
    %(commitments)b::bytea[], (%(headers)b::text[])::jsonb[], %(body_bytes)b::int[])
ORDER BY ordinal;

-- name: settings
-- Bounds of a lane's session. Nothing here waits for locks or sleeps inside a transaction.
SELECT set_config('statement_timeout', %(statement_timeout)s, false), set_config('TimeZone', 'UTC', false);
