-- name: leaf_hashes
-- The leaf hashes of all batches that reach into these ranges of indexes, with the index of their first.
SELECT s.first_index, b.leaf_hashes
FROM unnest(%(begins)s::bigint[], %(ends)s::bigint[]) AS r("begin", "end")
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.sealed_batch
    WHERE first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= r."begin"), 0)
        AND first_index < r."end"
) s
JOIN statesvc.batch b ON b.batch_id = s.batch_id AND b.recorded_from = s.recorded_from;

-- name: subtrees
-- The retained nodes in these ranges of positions.
SELECT s.level, s.position, s.hash
FROM unnest(%(levels)s::smallint[], %(begins)s::bigint[], %(ends)s::bigint[]) AS r(level, "begin", "end")
JOIN statesvc.subtree s ON s.level = r.level AND s.position >= r."begin" AND s.position < r."end";
