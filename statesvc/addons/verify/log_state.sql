-- name: origin
-- Return the log's keys, the first one first.
SELECT origin, public_key FROM statesvc.signing_key ORDER BY created_at, key_id;

-- name: newest
-- Return how far heads reach.
SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint;

-- name: second_signature
-- Return the newest head's note, its second signature, and the keys for it.
SELECT c.note, s.line, k.origins, k.cosigners
FROM statesvc.checkpoint c LEFT JOIN statesvc.second_signature s USING (tree_size),
    (SELECT coalesce(array_agg(origin), '{}') AS origins, coalesce(array_agg(cosigner), '{}') AS cosigners
    FROM statesvc.signing_key WHERE cosigner IS NOT NULL) k
ORDER BY c.tree_size DESC LIMIT 1;

-- name: announcements
-- Return where in the log keys were announced.
SELECT s.first_index + a.ordinal, a.canonical FROM statesvc.action a JOIN statesvc.sealed_batch s ON s.batch_id = a.batch_id
WHERE a.verb = %(verb)s;

-- name: waiting
-- Return the batches that no head covers yet; and of each, whether nobody queued it: the trigger that does was disabled.
SELECT b.batch_id, u.batch_id IS NULL AND s.batch_id IS NULL FROM statesvc.batch b
LEFT JOIN statesvc.unsealed u ON u.batch_id = b.batch_id
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = b.batch_id
WHERE s.batch_id IS NULL OR s.first_index >= %(size)s
UNION
SELECT u.batch_id, false FROM statesvc.unsealed u;

-- name: inversions
-- Return sealed events that stand after the next version of their shipment, and whether their batch was written before its batch.
SELECT x.shipment_id::text, x.version, x.index, x.next_version, x.next_index, x.batch_id < x.next_batch_id
FROM (
    SELECT e.shipment_id, e.version, e.batch_id, s.first_index + e.ordinal AS index, lead(e.version) OVER w AS next_version,
        lead(e.batch_id) OVER w AS next_batch_id, lead(s.first_index + e.ordinal) OVER w AS next_index
    FROM statesvc.event e JOIN statesvc.sealed_batch s ON s.batch_id = e.batch_id
    WINDOW w AS (PARTITION BY e.shipment_id ORDER BY e.version)
) x
WHERE x.next_index < x.index ORDER BY x.index LIMIT %(most)s;

-- name: batch_sizes
-- Return all batches by id.
SELECT batch_id, entries FROM statesvc.batch ORDER BY batch_id;

-- name: id_bounds
-- Return the highest batch id that was ever given, and the highest that stands anywhere.
SELECT coalesce(pg_sequence_last_value('statesvc.batch_id_seq'), 0), greatest(
    (SELECT max(batch_id) FROM statesvc.batch), (SELECT max(batch_id) FROM statesvc.event), (SELECT max(batch_id) FROM statesvc.conflict),
    (SELECT max(batch_id) FROM statesvc.transition), (SELECT max(batch_id) FROM statesvc.fanout), (SELECT max(batch_id) FROM statesvc.attempt),
    (SELECT max(batch_id) FROM statesvc.observation), (SELECT max(batch_id) FROM statesvc.action));

-- name: erased
-- Return the shipments whose key is gone.
SELECT s.shipment_id::text FROM statesvc.stream s WHERE s.erased_at IS NOT NULL;

-- name: not_erased
-- Return those of these shipments that have a key.
SELECT s.shipment_id::text FROM statesvc.stream s
WHERE s.shipment_id = ANY (%(shipment_ids)s::uuid[]) AND s.erased_at IS NULL ORDER BY 1;
