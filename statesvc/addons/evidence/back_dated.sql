-- name: back_dated
-- Return the batches of these entries that say an earlier time than batches before them, with the latest time of those. Only a batch that
-- was sealed long after its time can be one, and only what was sealed after that time can stand before it with a later one.
SELECT s.first_index, s.entries, l.latest
FROM (
    SELECT DISTINCT (SELECT max(p.first_index) FROM statesvc.sealed_batch p WHERE p.first_index <= i.index) AS first_index
    FROM unnest(%(indexes)s::bigint[]) AS i(index)
) x
JOIN statesvc.sealed_batch s ON s.first_index = x.first_index AND s.recorded_to < s.sealed_at - %(longest)s::interval
CROSS JOIN LATERAL (
    SELECT max(p.recorded_from) AS latest FROM statesvc.sealed_batch p
    WHERE p.first_index < s.first_index AND p.first_index >= coalesce((
        SELECT c.tree_size FROM statesvc.checkpoint c WHERE c.created_at <= s.recorded_to + %(longest)s::interval
        ORDER BY c.created_at DESC LIMIT 1), 0)
) l
WHERE l.latest > s.recorded_to + %(longest)s::interval;
