-- name: origin
-- Return the log's keys, the first one first.
SELECT origin, public_key FROM statesvc.signing_key ORDER BY created_at, key_id;

-- name: newest
-- Return how far heads reach.
SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint;

-- name: announcements
-- Return where in the log keys were announced.
SELECT s.first_index + a.ordinal, a.canonical FROM statesvc.action a JOIN statesvc.sealed_batch s ON s.batch_id = a.batch_id
WHERE a.verb = %(verb)s;

-- name: waiting
-- Return the batches that no head covers yet.
SELECT u.batch_id FROM statesvc.unsealed u
UNION
SELECT s.batch_id FROM statesvc.sealed_batch s WHERE s.first_index >= %(size)s;

-- name: batch_sizes
-- Return all batches by id.
SELECT batch_id, entries FROM statesvc.batch ORDER BY batch_id;

-- name: id_bounds
-- Return the highest batch id that was ever given, and the highest that stands anywhere.
SELECT coalesce(pg_sequence_last_value('statesvc.batch_id_seq'), 0), greatest(
    (SELECT max(batch_id) FROM statesvc.batch), (SELECT max(batch_id) FROM statesvc.event), (SELECT max(batch_id) FROM statesvc.conflict),
    (SELECT max(batch_id) FROM statesvc.transition), (SELECT max(batch_id) FROM statesvc.fanout), (SELECT max(batch_id) FROM statesvc.attempt),
    (SELECT max(batch_id) FROM statesvc.observation), (SELECT max(batch_id) FROM statesvc.action));
