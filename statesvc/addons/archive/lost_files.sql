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
