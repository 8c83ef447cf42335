-- name: sealed
-- Return the batches that reach into these indexes, in their order, with their leaf hashes where the batch is as it was sealed.
SELECT s.first_index, s.batch_id, s.recorded_from, s.recorded_to, s.entries, s.sealed_at, b.entries, b.leaf_hashes
FROM statesvc.sealed_batch s
LEFT JOIN statesvc.batch b ON b.batch_id = s.batch_id AND b.recorded_from = s.recorded_from AND b.recorded_to = s.recorded_to
WHERE s.first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= %(begin)s), 0)
    AND s.first_index < %(end)s
ORDER BY s.first_index;

-- name: batch_exists
-- Return whether a batch is there under another time.
SELECT EXISTS (SELECT FROM statesvc.batch WHERE batch_id = %(batch_id)s);

-- name: heads
-- Return the checkpoints of these sizes, and the first one above them.
SELECT tree_size, root, note, created_at FROM statesvc.checkpoint
WHERE tree_size > %(begin)s AND tree_size <= coalesce((SELECT min(c.tree_size) FROM statesvc.checkpoint c WHERE c.tree_size >= %(end)s), %(end)s)
ORDER BY tree_size;

-- name: subtrees
-- Return the retained nodes of one level in these positions.
SELECT position, hash FROM statesvc.subtree WHERE level = %(level)s AND position >= %(begin)s AND position < %(end)s;

-- name: unexpected_subtree
-- Return a retained node that the sealed tree does not have yet, or at a level that is none.
SELECT t.level, t.position FROM statesvc.subtree t
WHERE t.level % 8 <> 0 OR t.position >= coalesce(
    (SELECT s.first_index + s.entries FROM statesvc.sealed_batch s ORDER BY s.first_index DESC LIMIT 1), 0) >> t.level::int
ORDER BY t.level, t.position LIMIT 1;
