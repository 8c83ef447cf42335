-- name: batches_of_ranges
-- Return the batches that reach into these ranges of indexes: where each begins in its range, and which of its leaf hashes are meant.
SELECT greatest(s.first_index, r."begin"), s.batch_id, s.recorded_from, greatest(r."begin" - s.first_index, 0)::int,
    (least(s.first_index + s.entries, r."end") - greatest(s.first_index, r."begin"))::int
FROM unnest(%(begins)s::bigint[], %(ends)s::bigint[]) AS r("begin", "end")
CROSS JOIN LATERAL (
    SELECT * FROM statesvc.sealed_batch
    WHERE first_index >= coalesce((SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= r."begin"), 0)
        AND first_index < r."end" AND first_index + entries > r."begin"
) s;

-- name: leaf_hashes
-- Return the leaf hashes of each batch: `count` of them after the first `skip`. All were recorded from `since` until `until`, so the
-- planner leaves out the other months. OFFSET 0 keeps it one probe a batch (joined freely, all batches there are would be read), and shows
-- the planner what one plan for all months would cost: with LIMIT 1 that looks as good, and is reused.
SELECT r.first_index, substring(b.leaf_hashes FROM 32 * r.skip + 1 FOR 32 * r.count)
FROM unnest(
    %(first_indexes)s::bigint[], %(batch_ids)s::bigint[], %(recorded)s::timestamptz[], %(skips)s::int[], %(counts)s::int[]
) AS r(first_index, batch_id, recorded_from, skip, count)
CROSS JOIN LATERAL (
    SELECT leaf_hashes FROM statesvc.batch
    WHERE batch_id = r.batch_id AND recorded_from = r.recorded_from AND recorded_from BETWEEN %(since)s AND %(until)s
    OFFSET 0
) b;

-- name: subtrees
-- Return the retained nodes in these ranges of positions.
SELECT s.level, s.position, s.hash
FROM unnest(%(levels)s::smallint[], %(begins)s::bigint[], %(ends)s::bigint[]) AS r(level, "begin", "end")
JOIN statesvc.subtree s ON s.level = r.level AND s.position >= r."begin" AND s.position < r."end";
