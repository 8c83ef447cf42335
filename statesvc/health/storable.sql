-- name: applied
-- Return the migrations that this database has.
SELECT version::int FROM statesvc.schema_migrations;

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
