-- name: table_sizes
-- Return every table, its partitions together, with its bytes with indexes and TOAST, and since when what it holds was recorded (NULL: it
-- is not partitioned, or nothing was written to a partition of it yet). The names of partitions end in their month or day.
SELECT coalesce(p.relname, c.relname)::text, sum(pg_total_relation_size(c.oid))::bigint,
    min(to_date(substring(c.relname FROM '_(\d{6,8})$'), CASE length(substring(c.relname FROM '_(\d{6,8})$')) WHEN 6 THEN 'YYYYMM' ELSE 'YYYYMMDD' END))
        FILTER (WHERE i.inhparent IS NOT NULL AND pg_relation_size(c.oid) > 0)
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind = 'r'
GROUP BY 1;

-- name: entries
-- Return the time, when the first checkpoint was published, how many entries the log has, and how many it had seven days ago.
SELECT statesvc.clock(), (SELECT c.created_at FROM statesvc.checkpoint c ORDER BY c.tree_size LIMIT 1),
    coalesce((SELECT max(c.tree_size) FROM statesvc.checkpoint c), 0),
    coalesce((SELECT c.tree_size FROM statesvc.checkpoint c WHERE c.created_at <= statesvc.clock() - interval '7 days'
        ORDER BY c.created_at DESC LIMIT 1), 0);

-- name: entries_before
-- Return how many entries the log had before an instant.
SELECT coalesce((SELECT c.tree_size FROM statesvc.checkpoint c WHERE c.created_at < %(instant)s ORDER BY c.created_at DESC LIMIT 1), 0);

-- name: archives
-- Return the bytes of the archive files: of bodies, and of months of the log.
SELECT (SELECT coalesce(sum(a.size_bytes), 0)::bigint FROM statesvc.body_archive a WHERE a.deleted_at IS NULL),
    (SELECT coalesce(sum(a.size_bytes), 0)::bigint FROM statesvc.log_archive a);
