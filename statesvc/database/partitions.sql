-- name: ensure
-- Make the partitions ahead.
SELECT count(*) FROM statesvc.ensure_partitions();

-- name: missing
-- Return the partitions that writing needs now and in the next step, and those of past months in which sealed entries were recorded that
-- are in no archive, as far as no such partition is attached. `is_there`: a table has the name. `held`: sealed entries were recorded in its
-- time.
WITH wanted AS (
    SELECT p.table_name, p.step, date_trunc(p.step, statesvc.clock() AT TIME ZONE 'UTC') + n * ('1 ' || p.step)::interval AS begins, n >= 0 AS needed
    FROM statesvc.partitioned p CROSS JOIN generate_series(0, 1) n
    UNION
    SELECT p.table_name, p.step, m.begins, false
    FROM statesvc.partitioned p
    CROSS JOIN generate_series(
        (SELECT date_trunc('month', min(f.recorded_from) AT TIME ZONE 'UTC') FROM (
            SELECT s.recorded_from FROM statesvc.sealed_batch s ORDER BY s.first_index LIMIT 1) f),
        date_trunc('month', statesvc.clock() AT TIME ZONE 'UTC') - interval '1 month', '1 month') AS m(begins)
    WHERE p.append_only AND NOT EXISTS (SELECT FROM statesvc.log_archive a WHERE a.month = m.begins::date AND a.verified_at IS NOT NULL)
), absent AS (
    SELECT w.*, w.table_name || '_' || to_char(w.begins, CASE w.step WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END) AS name
    FROM wanted w
    WHERE NOT EXISTS (
        SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass('statesvc.' || w.table_name)
            AND c.relname = w.table_name || '_' || to_char(w.begins, CASE w.step WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END))
), judged AS (
    SELECT a.*, to_regclass('statesvc.' || a.name) IS NOT NULL AS is_there,
        EXISTS (SELECT FROM statesvc.partitioned p WHERE p.table_name = a.table_name AND p.append_only) AND EXISTS (
            SELECT FROM statesvc.sealed_batch s WHERE s.recorded_from >= a.begins AT TIME ZONE 'UTC'
                AND s.recorded_from < (a.begins + ('1 ' || a.step)::interval) AT TIME ZONE 'UTC') AS held
    FROM absent a
)
SELECT j.table_name, j.name, j.begins::date, (j.begins + ('1 ' || j.step)::interval)::date, j.is_there, j.held
FROM judged j WHERE j.needed OR j.held ORDER BY j.name;
