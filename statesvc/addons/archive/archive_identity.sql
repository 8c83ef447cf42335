-- name: archived_files
-- Return what must be in the archive: the files of days and months that are no longer in the database, and how long each is, a month's
-- index included.
SELECT a.file_name, a.size_bytes FROM statesvc.body_archive a
WHERE a.dropped_at IS NOT NULL AND a.expired_at IS NULL AND a.lost_at IS NULL
UNION ALL
SELECT a.file_name, a.size_bytes FROM statesvc.log_archive a WHERE a.dropped_at IS NOT NULL AND a.lost_at IS NULL
ORDER BY 1;

-- name: sealing_refusal
-- Return why this may be an older database than the archive has seen: what was lost is written anew only after a fork.
SELECT r.why FROM statesvc.sealing_refusal r;

-- name: note_refusal
-- Note that nothing is archived and nothing dropped, and why.
INSERT INTO statesvc.archive_refusal (why, since, noted_at) VALUES (%(why)s, statesvc.clock(), statesvc.clock())
ON CONFLICT (one_row) DO UPDATE SET why = excluded.why, noted_at = excluded.noted_at;

-- name: end_refusal
-- Note that the archive is what it should be.
DELETE FROM statesvc.archive_refusal;

-- name: read_refusal
-- Return why nothing is archived, and for how long. Passes note it again within the hour: what is older was noted by a worker that archives
-- no more.
SELECT r.why, extract(epoch FROM statesvc.clock() - r.since)::float8 FROM statesvc.archive_refusal r
WHERE r.noted_at > statesvc.clock() - interval '3 hours';

-- name: read_failures
-- Return the days and months that could not be archived and are still in the database, and why at the last try.
SELECT 'days', count(*), (array_agg(a.failure ORDER BY a.failed_at DESC))[1] FROM statesvc.body_archive a
WHERE a.failures > 0 AND a.dropped_at IS NULL HAVING count(*) > 0
UNION ALL
SELECT 'months', count(*), (array_agg(a.failure ORDER BY a.failed_at DESC))[1] FROM statesvc.log_archive a
WHERE a.failures > 0 AND a.dropped_at IS NULL HAVING count(*) > 0;

-- name: find_archived
-- Return the digest and the length of an archived file that is not given up yet; of a month that of its entries.
SELECT a.sha256, a.size_bytes FROM statesvc.body_archive a
WHERE a.file_name = %(file_name)s AND a.dropped_at IS NOT NULL AND a.expired_at IS NULL AND a.lost_at IS NULL
UNION ALL
SELECT a.sha256, a.size_bytes FROM statesvc.log_archive a
WHERE a.file_name = %(file_name)s AND a.dropped_at IS NOT NULL AND a.lost_at IS NULL;

-- name: give_up_day
-- Note that a day's file is lost for good.
UPDATE statesvc.body_archive SET lost_at = statesvc.clock() WHERE file_name = %(file_name)s AND dropped_at IS NOT NULL AND lost_at IS NULL;

-- name: give_up_month
-- Note that a month's files are lost for good.
UPDATE statesvc.log_archive SET lost_at = statesvc.clock() WHERE file_name = %(file_name)s AND dropped_at IS NOT NULL AND lost_at IS NULL;
