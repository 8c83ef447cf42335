-- name: batch_bounds
-- Return the lowest and the highest batch of the entries of one kind that were recorded in a month, and how many there are.
SELECT min(batch_id), max(batch_id), count(*) FROM {table} WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s;

-- name: index_bounds
-- Return where these batches stand in the tree, and whether any of them is not sealed yet.
SELECT (SELECT min(s.first_index) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    (SELECT max(s.first_index + s.entries) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    EXISTS (SELECT FROM statesvc.unsealed u WHERE u.batch_id BETWEEN %(low)s AND %(high)s AND u.recorded_from < %(ends)s);

-- name: entries
-- Return a month's entries of one kind in a range of the log.
SELECT s.first_index + e.ordinal, e.batch_id, e.ordinal, e.canonical, {sealed_part}
FROM statesvc.sealed_batch s JOIN {table} e ON e.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND e.recorded_at >= %(begins)s AND e.recorded_at < %(ends)s;

-- name: try_lead
-- Take the lock that lets one archiver of the log work at a time, as long as its session lasts.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.log_archive', 0));

-- name: limit_session
-- Set the time limits of the session: a month's statement may take long, whatever the role allows others; a wait for a lock, or a pause
-- inside a transaction, may not.
SELECT set_config('statement_timeout', '60min', false), set_config('lock_timeout', '2s', false),
    set_config('idle_in_transaction_session_timeout', '10min', false), set_config('TimeZone', 'UTC', false);

-- name: due_months
-- Return the months to archive: older than the hot ones, with entries, not gone yet; the oldest first. Reads one entry of each month at
-- most.
SELECT p.month, p.begins, p.ends FROM (
    SELECT to_date(right(c.relname, 6), 'YYYYMM') AS month,
        to_date(right(c.relname, 6), 'YYYYMM')::timestamp AT TIME ZONE 'UTC' AS begins,
        (to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') AT TIME ZONE 'UTC' AS ends
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'statesvc.event'::regclass
) p
WHERE (p.ends AT TIME ZONE 'UTC') + make_interval(months => %(hot_months)s::int) <= (statesvc.clock() AT TIME ZONE 'UTC')
    AND NOT EXISTS (SELECT FROM statesvc.log_archive a WHERE a.month = p.month AND a.dropped_at IS NOT NULL)
    AND (EXISTS (SELECT FROM statesvc.event e WHERE e.recorded_at >= p.begins AND e.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.action o WHERE o.recorded_at >= p.begins AND o.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.fanout f WHERE f.recorded_at >= p.begins AND f.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.observation v WHERE v.recorded_at >= p.begins AND v.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.attempt t WHERE t.recorded_at >= p.begins AND t.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.conflict c WHERE c.recorded_at >= p.begins AND c.recorded_at < p.ends)
        OR EXISTS (SELECT FROM statesvc.transition n WHERE n.recorded_at >= p.begins AND n.recorded_at < p.ends))
ORDER BY p.month;

-- name: begin_month
-- Open the month's row, or find how far it came.
INSERT INTO statesvc.log_archive AS a (month, begins, ends, begun_at) VALUES (%(month)s, %(begins)s, %(ends)s, statesvc.clock())
ON CONFLICT (month) DO UPDATE SET begun_at = a.begun_at
RETURNING a.file_name, a.sha256, a.index_sha256, a.verified_at IS NOT NULL;

-- name: note_written
-- Note that both files are complete and on the disk.
UPDATE statesvc.log_archive SET file_name = %(file_name)s, sha256 = %(sha256)s, index_sha256 = %(index_sha256)s, size_bytes = %(size_bytes)s,
    tree_size = %(tree_size)s, first_index = %(first_index)s, last_index = %(last_index)s, first_batch = %(first_batch)s,
    last_batch = %(last_batch)s, events = %(event)s, conflicts = %(conflict)s, transitions = %(transition)s, fanouts = %(fanout)s,
    attempts = %(attempt)s, observations = %(observation)s, actions = %(action)s, written_at = statesvc.clock()
WHERE month = %(month)s AND verified_at IS NULL;

-- name: note_verified
-- Note that what the files hold was compared with the partitions.
UPDATE statesvc.log_archive SET verified_at = statesvc.clock() WHERE month = %(period)s AND sha256 = %(sha256)s AND verified_at IS NULL;

-- name: give_notice
-- Have readers count the month as gone from now on.
UPDATE statesvc.log_archive a SET leaving_at = coalesce(a.leaving_at, statesvc.clock())
WHERE a.month = %(month)s AND a.sha256 = %(sha256)s AND a.verified_at IS NOT NULL
RETURNING a.leaving_at + interval '1 minute';

-- name: forget_written
-- Have the files written anew, because they are not what the partitions are. Never once the partitions are gone.
UPDATE statesvc.log_archive SET file_name = NULL, sha256 = NULL, index_sha256 = NULL, size_bytes = NULL, tree_size = NULL, first_index = NULL,
    last_index = NULL, first_batch = NULL, last_batch = NULL, events = NULL, conflicts = NULL, transitions = NULL, fanouts = NULL,
    attempts = NULL, observations = NULL, actions = NULL, written_at = NULL, verified_at = NULL, leaving_at = NULL
WHERE month = %(period)s AND dropped_at IS NULL;

-- name: note_failure
-- Note that a month could not be archived, and is tried again.
UPDATE statesvc.log_archive SET failures = failures + 1, failed_at = statesvc.clock(), failure = %(failure)s WHERE month = %(period)s;

-- name: drop_month
-- Take the month's entries out of the database, but for those that stay; return of how many shipments these are.
SELECT statesvc.drop_log_month(%(month)s, %(sha256)s, %(active_since)s);

-- name: clock
-- Return the operational time, and since when a shipment counts as active.
SELECT statesvc.clock(), statesvc.clock() - make_interval(months => %(hot_months)s::int);

-- name: unpacked
-- Return the months that are gone and whose shipments' keys were not packed since.
SELECT a.month FROM statesvc.log_archive a WHERE a.dropped_at IS NOT NULL AND a.packed_at IS NULL ORDER BY a.month;

-- name: pack_keys
-- Pack what may be packed of the next keys; return the last of them, and how many were packed.
SELECT p.carrier_id, p.event_id, p.packed FROM statesvc.pack_keys(%(carrier_id)s, %(event_id)s, %(limit)s) p;

-- name: note_packed
-- Note that all keys were looked at since these months went.
UPDATE statesvc.log_archive SET packed_at = statesvc.clock() WHERE month = ANY (%(months)s::date[]);
