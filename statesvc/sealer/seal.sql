-- name: lead
-- Take the lead unless another sealer has it; it ends with the session. Never the waiting form: its snapshot would hold back vacuum.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.sealer', 0)), pg_backend_pid();

-- name: horizon
-- Return how far the log is sealed, when that was, and when the last of it was recorded. A fork's batch is sealed before those that waited
-- for it, so its time says nothing about theirs.
SELECT s.first_index + s.entries, s.sealed_at, (
    SELECT b.recorded_from FROM statesvc.sealed_batch b
    WHERE NOT EXISTS (SELECT FROM statesvc.log_epoch e WHERE e.epoch > 1 AND e.begins = b.first_index)
    ORDER BY b.first_index DESC LIMIT 1)
FROM statesvc.sealed_batch s ORDER BY s.first_index DESC LIMIT 1;

-- name: writers
-- Return the highest batch id that was given out, and the oldest transaction that still writes.
SELECT coalesce(pg_sequence_last_value('statesvc.batch_id_seq'), 0), pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- name: next_batches
-- Return the committed batches that have no place yet, as one snapshot shows them and in the order of their ids, and the time. From
-- `from_id` on, so that deleted rows which vacuum cannot take yet are not walked again. OFFSET 0 keeps it one lookup a batch, whatever the
-- tables held when the plan was made.
SELECT u.batch_id, u.recorded_from, b.recorded_to, b.leaf_hashes, (SELECT statesvc.clock())
FROM (SELECT * FROM statesvc.unsealed WHERE batch_id >= %(from_id)s ORDER BY batch_id LIMIT %(limit)s) u
LEFT JOIN LATERAL (
    SELECT m.recorded_to, m.leaf_hashes FROM statesvc.batch m
    WHERE m.batch_id = u.batch_id AND m.recorded_from = u.recorded_from OFFSET 0
) b ON true
ORDER BY u.batch_id;

-- name: requeue_forgotten
-- Queue the batches of a range of ids that are neither sealed nor queued: they were written while the trigger that queues them was disabled.
-- One snapshot shows a batch and its row in the queue, or neither.
INSERT INTO statesvc.unsealed (batch_id, recorded_from)
SELECT b.batch_id, b.recorded_from FROM statesvc.batch b
WHERE b.batch_id >= %(from_id)s AND b.batch_id <= %(to_id)s
    AND NOT EXISTS (SELECT FROM statesvc.sealed_batch s
        WHERE s.batch_id = b.batch_id AND s.batch_id >= %(from_id)s AND s.batch_id <= %(to_id)s)
    AND NOT EXISTS (SELECT FROM statesvc.unsealed u WHERE u.batch_id = b.batch_id)
ORDER BY b.batch_id
RETURNING batch_id;

-- name: place_batches
-- Give batches their place, keeps the nodes that they completed, and take them from the queue: all of it or nothing. Return the id of its
-- transaction.
WITH placed AS (
    INSERT INTO statesvc.sealed_batch (first_index, batch_id, recorded_from, recorded_to, entries, sealed_at)
    SELECT u.first_index, u.batch_id, u.recorded_from, u.recorded_to, u.entries, %(sealed_at)s
    FROM unnest(%(first_indexes)s::bigint[], %(batch_ids)s::bigint[], %(recorded_froms)s::timestamptz[], %(recorded_tos)s::timestamptz[],
        %(entries)s::int[]) AS u(first_index, batch_id, recorded_from, recorded_to, entries)
), retained AS (
    INSERT INTO statesvc.subtree (level, position, hash)
    SELECT * FROM unnest(%(levels)s::smallint[], %(positions)s::bigint[], %(hashes)s::bytea[])
), taken AS (
    DELETE FROM statesvc.unsealed WHERE batch_id = ANY (%(batch_ids)s::bigint[])
)
SELECT pg_current_xact_id()::text::bigint;

-- name: publish
-- Keep a signed head. Its second signature takes the place of the last one's: it covers all before it, and one for each head would be most
-- of a small log.
WITH signed AS (
    INSERT INTO statesvc.second_signature (tree_size, line) SELECT %(tree_size)s, %(second_signature)s::text WHERE %(second_signature)s::text IS NOT NULL
    ON CONFLICT (one_row) DO UPDATE SET tree_size = excluded.tree_size, line = excluded.line
)
INSERT INTO statesvc.checkpoint (tree_size, root, note, created_at) VALUES (%(tree_size)s, %(root)s, %(note)s, %(created_at)s);

-- name: refuse
-- Show every role why the log cannot go on.
INSERT INTO statesvc.sealing_refusal (why, since) VALUES (%(why)s, statesvc.clock()) ON CONFLICT (one_row) DO UPDATE SET why = excluded.why;

-- name: accept
-- Note that the log is the one that was published.
DELETE FROM statesvc.sealing_refusal;
