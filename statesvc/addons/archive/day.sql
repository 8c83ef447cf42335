-- name: day_bodies
-- Return the next bodies of one day in the order of their ids, each with what its key is wrapped in; as many as fit the bytes, at least
-- one. Every other table is probed by its key, body by body: no plan of this may read one whole.
WITH next AS MATERIALIZED (
    SELECT b.message_id, b.received_at, b.carrier_id, b.commitment, b.headers, octet_length(b.sealed) AS sealed_bytes,
        sum(octet_length(b.sealed)) OVER (ORDER BY b.message_id) AS bytes_upto
    FROM (
        SELECT * FROM statesvc.body b
        WHERE b.received_at >= %(from)s::timestamptz AND b.received_at < %(until)s::timestamptz AND b.message_id > %(after)s
        ORDER BY b.message_id LIMIT %(limit)s
    ) b
)
SELECT n.message_id, n.received_at, n.carrier_id, n.commitment, n.headers, b.sealed,
    CASE WHEN m.settled THEN m.sealed_key ELSE coalesce(q.sealed_key, d.sealed_key) END AS sealed_key,
    coalesce(m.shipments, '{}') AS shipments, coalesce(m.held, false) AS held
FROM next n
JOIN LATERAL (
    SELECT b.sealed FROM statesvc.body b
    WHERE b.message_id = n.message_id AND b.received_at = n.received_at
        AND b.received_at >= %(from)s::timestamptz AND b.received_at < %(until)s::timestamptz LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT true AS settled, m.sealed_key, m.shipments, %(holds)s AND statesvc.under_legal_hold(m.shipments) AS held
    FROM statesvc.message m
    WHERE m.message_id = n.message_id AND m.received_at = n.received_at
        AND m.received_at >= %(from)s::timestamptz AND m.received_at < %(until)s::timestamptz LIMIT 1
) m ON true
LEFT JOIN LATERAL (SELECT q.sealed_key FROM statesvc.inbox q WHERE q.message_id = n.message_id LIMIT 1) q ON true
LEFT JOIN LATERAL (
    SELECT d.sealed_key FROM statesvc.dead_letter d
    WHERE d.message_id = n.message_id AND d.kind = 'message' AND d.sealed_key IS NOT NULL ORDER BY d.dead_letter_id DESC LIMIT 1
) d ON true
WHERE n.bytes_upto - n.sealed_bytes < %(bytes_max)s
ORDER BY n.message_id;

-- name: any_hold
-- Return whether any legal hold stands. Most installations have none, and then no message is asked about.
SELECT EXISTS (SELECT FROM statesvc.legal_hold h WHERE h.released_at IS NULL);

-- name: try_lead
-- Take the lock that lets one archiver work at a time, as long as its session lasts.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.body_archive', 0));

-- name: limit_session
-- Set the time limits of the session: a day's statement may take minutes, whatever the role allows others; a wait for a lock, or a pause
-- inside a transaction, may not.
SELECT set_config('statement_timeout', '10min', false), set_config('lock_timeout', '2s', false),
    set_config('idle_in_transaction_session_timeout', '1min', false);

-- name: due_days
-- Return the days whose partition is older than its hot days, the oldest first. Reads the catalog only.
SELECT p.day FROM (
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'statesvc.body'::regclass
) p
WHERE p.day + 1 + %(hot_days)s::int <= (statesvc.clock() AT TIME ZONE 'UTC')::date
ORDER BY p.day;

-- name: begin_day
-- Open the day's row, or find how far it came.
INSERT INTO statesvc.body_archive AS a (day, begun_at) VALUES (%(day)s, statesvc.clock())
ON CONFLICT (day) DO UPDATE SET begun_at = a.begun_at
RETURNING a.file_name, a.sha256, a.verified_at IS NOT NULL AS verified;

-- name: note_written
-- Note that the file is complete and on the disk.
UPDATE statesvc.body_archive SET file_name = %(file_name)s, sha256 = %(sha256)b, size_bytes = %(size_bytes)s,
    bodies = %(compressed)s::bigint + %(unopened)s::bigint + %(erased)s::bigint, compressed = %(compressed)s, unopened = %(unopened)s,
    erased = %(erased)s, written_at = statesvc.clock()
WHERE day = %(day)s AND verified_at IS NULL;

-- name: note_verified
-- Note that what the file holds was compared with the partition.
UPDATE statesvc.body_archive SET verified_at = statesvc.clock() WHERE day = %(period)s AND sha256 = %(sha256)b AND verified_at IS NULL;

-- name: forget_written
-- Have the file written anew, because it is not what the partition is. Never once the partition is gone.
UPDATE statesvc.body_archive SET file_name = NULL, sha256 = NULL, size_bytes = NULL, bodies = NULL, compressed = NULL, unopened = NULL,
    erased = NULL, written_at = NULL, verified_at = NULL
WHERE day = %(period)s AND dropped_at IS NULL;

-- name: note_failure
-- Note that a day could not be archived, and is tried again.
UPDATE statesvc.body_archive SET failures = failures + 1, failed_at = statesvc.clock(), failure = %(failure)s WHERE day = %(period)s;

-- name: drop_day
-- Drop the day's partition, and return how many bodies were retained because they still wait.
SELECT statesvc.drop_archived_day(%(day)s, %(sha256)b);

-- name: expiring_days
-- Return the archives whose months are over.
SELECT a.day, a.file_name, a.lost_at IS NOT NULL FROM statesvc.body_archive a
WHERE a.dropped_at IS NOT NULL AND a.expired_at IS NULL
    AND a.day + 1 + make_interval(months => %(keep_months)s::int) <= (statesvc.clock() AT TIME ZONE 'UTC')
ORDER BY a.day;

-- name: drop_expired_messages
-- Take the oldest month of verdicts whose bodies all expired out of the database; NULL: none is due.
SELECT statesvc.drop_expired_messages();

-- name: newest_hold
-- Return the hold that was placed last, to see whether another one came meanwhile.
SELECT coalesce(max(h.legal_hold_id), 0) FROM statesvc.legal_hold h;

-- name: stop_holds
-- Keep everybody from placing a hold until this transaction ends.
LOCK TABLE statesvc.legal_hold IN SHARE MODE;

-- name: note_expired
-- Note that the day's bodies are gone from now on, but for those that were retained.
UPDATE statesvc.body_archive SET expired_at = statesvc.clock() WHERE day = %(day)s AND expired_at IS NULL;

-- name: undeleted_days
-- Return the expired archives whose file is still to be deleted.
SELECT a.day, a.file_name FROM statesvc.body_archive a WHERE a.expired_at IS NOT NULL AND a.deleted_at IS NULL ORDER BY a.day;

-- name: note_deleted
-- Note that the file is deleted.
UPDATE statesvc.body_archive SET deleted_at = statesvc.clock() WHERE day = %(day)s;

-- name: longest_unchecked
-- Return the file that was not checked for the longest time, if that is too long.
SELECT a.day, a.file_name, a.sha256 FROM statesvc.body_archive a
WHERE a.dropped_at IS NOT NULL AND a.expired_at IS NULL AND a.lost_at IS NULL
    AND coalesce(a.checked_at, a.verified_at) < statesvc.clock() - make_interval(days => %(days)s::int)
ORDER BY coalesce(a.checked_at, a.verified_at) LIMIT 1;

-- name: note_checked
-- Note what the check of the file found; NULL: it is as it was written.
UPDATE statesvc.body_archive SET checked_at = statesvc.clock(), fault = %(fault)s WHERE day = %(day)s;

-- name: archives
-- Return the whole ledger, the oldest day first: a row a day, for some years.
SELECT a.day, a.begun_at, a.file_name, a.sha256, a.size_bytes, a.bodies, a.compressed, a.unopened, a.erased, a.written_at, a.verified_at,
    a.dropped_at, a.expired_at, a.deleted_at, a.checked_at, a.fault, a.lost_at, a.failures, a.failed_at, a.failure
FROM statesvc.body_archive a ORDER BY a.day;
