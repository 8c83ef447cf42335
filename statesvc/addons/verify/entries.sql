-- name: snapshot
-- Have all reads of one range see the same snapshot.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: session
-- Set up the session: times come as UTC, nothing is too slow, it shows who is at work, and no statement takes more than one processor of
-- the server.
SELECT set_config('TimeZone', 'UTC', false), set_config('statement_timeout', '0', false), set_config('jit', 'off', false),
    set_config('max_parallel_workers_per_gather', '0', false);

-- name: batches
-- Return the batches of a range of ids, and whether they are sealed or wait to be.
SELECT b.batch_id, b.recorded_from, b.recorded_to, b.entries, b.leaf_hashes, s.first_index, u.batch_id IS NOT NULL
FROM statesvc.batch b
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = b.batch_id
LEFT JOIN statesvc.unsealed u ON u.batch_id = b.batch_id
WHERE b.batch_id >= %(low)s AND b.batch_id < %(high)s;

-- name: entries
-- Return the entries of one kind in a range of batches. Their sealed parts only where someone opens them.
SELECT batch_id, ordinal, canonical, CASE WHEN %(opens)s THEN {sealed_part} END, {values}
FROM {table} WHERE batch_id >= %(low)s AND batch_id < %(high)s;

-- name: shipment_keys
-- Return the keys of shipments that have a stream; NULL: erased.
SELECT shipment_id::text, shipment_id, sealed_key FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)s::uuid[]);
