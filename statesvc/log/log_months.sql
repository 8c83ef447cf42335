-- name: months
-- Return the whole ledger, the oldest month first.
SELECT a.month, a.begins, a.ends, a.begun_at, a.file_name, a.sha256, a.index_sha256, a.size_bytes, a.tree_size, a.first_index, a.last_index,
    a.first_batch, a.last_batch, a.events, a.conflicts, a.transitions, a.fanouts, a.attempts, a.observations, a.actions, a.written_at, a.verified_at, a.leaving_at,
    a.dropped_at, a.packed_at, a.lost_at, a.failures, a.failed_at, a.failure
FROM statesvc.log_archive a ORDER BY a.month;

-- name: share_months
-- Keep every month from going while this session reads the log as a whole.
SELECT pg_advisory_lock_shared(hashtextextended('statesvc.log_months', 0));

-- name: archived
-- Count the months of the log and the days of bodies that are in files only.
SELECT (SELECT count(*) FROM statesvc.log_archive a WHERE a.dropped_at IS NOT NULL),
    (SELECT count(*) FROM statesvc.body_archive b WHERE b.dropped_at IS NOT NULL AND b.expired_at IS NULL);
