-- name: lead
-- Return whether this session drains the spool from now on, until it ends.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.spool ' || %(name)s::text, 0));

-- name: probe
-- Return once a commit is durable, and the tables of `put` are free.
SELECT pg_logical_emit_message(true, 'statesvc', ''),
    (SELECT count(*) FROM statesvc.put('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'));

-- name: place
-- Return the place before which everything in this spool is stored, 0 of a new spool; and the database's time.
INSERT INTO statesvc.spool AS s (name, seen_at, held_seconds) VALUES (%(name)s, statesvc.clock(), %(held_seconds)s)
ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, held_seconds = excluded.held_seconds
RETURNING s.place, s.seen_at;

-- name: advance
-- Move the place on, where it still is as it was read.
UPDATE statesvc.spool s SET place = %(end)s, seen_at = statesvc.clock() WHERE s.name = %(name)s AND s.place = %(place)s;

-- name: put
-- Store messages with the times of their ACKs.
SELECT ordinal, message_id, duplicate
FROM statesvc.put(
    %(message_ids)b::uuid[], %(carrier_ids)b::text[], %(digests)b::bytea[], %(sealed)b::bytea[], %(sealed_keys)b::bytea[],
    %(commitments)b::bytea[], (%(headers)b::text[])::jsonb[], %(body_bytes)b::int[], NULL, NULL, %(acknowledged)b::timestamptz[])
ORDER BY ordinal;

-- name: report
-- Note how much waits.
UPDATE statesvc.spool s
SET messages = %(messages)s, bytes = %(bytes)s, set_aside = %(set_aside)s, oldest_at = %(oldest_at)s, clear_until = %(clear_until)s,
    seen_at = statesvc.clock()
WHERE s.name = %(name)s;

-- name: forget
-- Forget a spool that is gone.
DELETE FROM statesvc.spool s WHERE s.name = %(name)s;
