-- name: applied
-- Return the migrations that this database has.
SELECT version::int FROM statesvc.schema_migrations;

-- name: locker
-- Return who holds a lock for more than half a second that keeps everybody from storing messages: table, process, role, how the statement
-- begins, seconds. Of the statement two words alone: the rest may be personal.
SELECT l.relation::regclass::text, a.pid, a.usename, coalesce(substring(a.query FROM '^\s*(\w+(?:\s+\w+)?)'), 'a statement that this role may not see'),
    extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.locktype = 'relation' AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND l.relation = ANY (ARRAY['statesvc.inbox', 'statesvc.body', 'statesvc.receipt', 'statesvc.lane']::regclass[])
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND a.xact_start < clock_timestamp() - interval '500 ms'
ORDER BY a.xact_start LIMIT 1;

-- name: fit_to_write
-- Return why the sealer does not go on with this log and since how many seconds, which tables have no partition for now, and what time it
-- is to the database; the next batch id, and the highest one that is sealed.
SELECT (SELECT r.why FROM statesvc.sealing_refusal r),
    (SELECT extract(epoch FROM clock.now - r.since)::float8 FROM statesvc.sealing_refusal r),
    ARRAY(
        SELECT p.table_name FROM statesvc.partitioned p
        WHERE to_regclass(format('statesvc.%I', p.table_name || '_' || to_char(
            clock.now AT TIME ZONE 'UTC', CASE p.step WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END))) IS NULL
        ORDER BY p.table_name),
    clock.now, (SELECT n.last_value + n.is_called::int FROM statesvc.batch_id_seq n), (SELECT max(b.batch_id) FROM statesvc.sealed_batch b)
FROM (SELECT statesvc.clock() AS now) clock;
