-- What every other file stands on: one clock, tables that refuse change, cheap statistics, and partitions by time.
-- The migrator has made the schema itself and its two ledgers, `schema_migrations` and `schema_functions`.

-- The one clock for leases, schedules and recorded times. It reads no setting, so that no client can bend it. Tests replace it in
-- their template database; `statesvc doctor` checks its definition.
CREATE FUNCTION statesvc.clock() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN clock_timestamp();

CREATE FUNCTION statesvc.refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on %.% is refused: it is append-only', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'SS001', HINT = 'Append a correction instead; nothing in the log is ever edited.';
END
$$;

-- Statement triggers are not inherited, and TRUNCATE of a partition does not fire its parent's: each partition gets its own.
CREATE FUNCTION statesvc.make_append_only(target regclass) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change()', target);
END
$$;

-- Makes ANALYZE of a table cheap. Autovacuum analyzes a table once a tenth of it is new, which in a flood is every ten seconds. By
-- default that reads 30,000 rows and sorts each of their columns: a second of processor time over all tables, and on two processors
-- webhooks wait for it (docs/bench.md). Our queries go by keys, so a fifth of the default suffices, and nothing at
-- all for bytes. Every new table needs it; partitions get it when they are made, because LIKE does not copy it.
CREATE FUNCTION statesvc.sample_little(target regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('ALTER TABLE %s %s', target, string_agg(
            format('ALTER COLUMN %I SET STATISTICS %s', a.attname, CASE a.atttypid WHEN 'bytea'::regtype THEN 0 ELSE 20 END), ', '))
        FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
    );
END
$$;

-- Which tables are partitioned by time, and how finely. functions/partitions.sql makes the partitions; those of an `append_only` table
-- refuse change as it does.
CREATE TABLE statesvc.partitioned (
    table_name text PRIMARY KEY,
    step text NOT NULL CHECK (step IN ('month', 'day')),
    steps_ahead int NOT NULL CHECK (steps_ahead > 0),
    append_only boolean NOT NULL
);
