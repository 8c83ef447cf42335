-- name: next_messages
-- Return the next messages of all carriers in the order of their key, and which of them are to be read again. However rare the carrier is,
-- a statement reads a page of the key: an index by carrier would cost every settle more than it saves a run.
SELECT m.message_id,
    m.carrier_id = %(carrier_id)s AND (%(since)s::timestamptz IS NULL OR m.received_at >= %(since)s)
        AND (%(read_by)s::text IS NULL OR m.normalizer = %(read_by)s OR starts_with(m.normalizer, %(read_by)s || '+m'))
FROM statesvc.message m
WHERE m.message_id > %(after)s
ORDER BY m.message_id LIMIT %(limit)s;

-- name: about_messages
-- Return about how many messages there are, as the planner knows it.
SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'statesvc.message'::regclass;
