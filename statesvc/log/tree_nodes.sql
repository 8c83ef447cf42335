-- name: leaf_hashes
-- The leaf hashes in these ranges of indexes, a row for each batch that reaches into one, with the index of its first hash.
SELECT greatest(s.first_index, r."begin"),
    substring(
        b.leaf_hashes
        FROM (32 * greatest(r."begin" - s.first_index, 0))::int + 1
        FOR (32 * (least(s.first_index + s.entries, r."end") - greatest(s.first_index, r."begin")))::int
    )
FROM unnest(%(begins)s::bigint[], %(ends)s::bigint[]) AS r("begin", "end")
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.sealed_batch
    WHERE first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= r."begin"), 0)
        AND first_index < r."end" AND first_index + entries > r."begin"
) s
-- one probe a batch, in its own partition: joined freely, the planner reads all batches there are
CROSS JOIN LATERAL (
    SELECT leaf_hashes FROM statesvc.batch WHERE batch_id = s.batch_id AND recorded_from = s.recorded_from LIMIT 1
) b;

-- name: subtrees
-- The retained nodes in these ranges of positions.
SELECT s.level, s.position, s.hash
FROM unnest(%(levels)s::smallint[], %(begins)s::bigint[], %(ends)s::bigint[]) AS r(level, "begin", "end")
JOIN statesvc.subtree s ON s.level = r.level AND s.position >= r."begin" AND s.position < r."end";
