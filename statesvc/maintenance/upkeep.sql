-- name: ensure_partitions
-- Makes the partitions ahead; without them every append would stop at the end of the month.
SELECT count(*) FROM statesvc.ensure_partitions();

-- name: expire_receipts
-- Forgets a bounded number of retries' digests after their 48 hours. The cutoff is a subquery, so that the index can be used.
DELETE FROM statesvc.receipt WHERE digest = ANY (ARRAY(
    SELECT r.digest FROM statesvc.receipt r WHERE r.received_at < (SELECT statesvc.clock() - interval '48 hours')
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED));
