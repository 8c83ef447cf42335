-- The schema, its clock, and the three rules that every later table leans on: operational time is `statesvc.clock()`,
-- append-only tables refuse change by trigger, and time-partitioned tables get their partitions made ahead.
-- The schema itself and `statesvc.schema_migrations` are made by the runner before this file.

-- The one clock for leases, schedules and recorded_at. Reads no setting, so that no client can bend it; tests replace the
-- function in their template database, `statesvc doctor` checks its definition.
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

-- Statement triggers are not inherited by partitions, and TRUNCATE of a partition does not fire its parent's: each
-- partition gets its own.
CREATE FUNCTION statesvc.make_append_only(target regclass) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change()', target);
END
$$;

-- Which tables are partitioned by time, and how finely. `append_only` partitions refuse change like their parent.
CREATE TABLE statesvc.partitioned (
    table_name text PRIMARY KEY,
    step text NOT NULL CHECK (step IN ('month', 'day')),
    steps_ahead int NOT NULL CHECK (steps_ahead > 0),
    append_only boolean NOT NULL
);

-- Makes the partitions of the step that holds `clock()`, of the one before it (clocks of two servers differ) and of the
-- steps ahead. Runs as its owner, so that a worker without the owner's credentials keeps the horizon open: without a
-- default partition, a closed horizon stops every append. Built beside the table and attached, because CREATE TABLE ..
-- PARTITION OF would take an ACCESS EXCLUSIVE lock on the parent. Returns the names of the new partitions.
CREATE FUNCTION statesvc.ensure_partitions() RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '2s'
    SET timezone = 'UTC' AS $$
DECLARE
    p record;
    n int;
    lower_bound timestamptz;
    upper_bound timestamptz;
    partition_name text;
BEGIN
    FOR p IN SELECT * FROM statesvc.partitioned ORDER BY table_name LOOP
        FOR n IN -1 .. p.steps_ahead LOOP
            lower_bound := date_trunc(p.step, statesvc.clock()) + n * ('1 ' || p.step)::interval;
            upper_bound := lower_bound + ('1 ' || p.step)::interval;
            partition_name := p.table_name || '_' || to_char(lower_bound, CASE p.step WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END);
            CONTINUE WHEN to_regclass(format('statesvc.%I', partition_name)) IS NOT NULL;
            -- two workers may look at once: the second waits for the first and then finds it made
            PERFORM pg_advisory_xact_lock(hashtextextended('statesvc.ensure_partitions', 0));
            -- not to_regclass: it would answer from the cache that the first look filled
            CONTINUE WHEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relname = partition_name);
            EXECUTE format('CREATE TABLE statesvc.%I (LIKE statesvc.%I INCLUDING ALL)', partition_name, p.table_name);
            IF p.append_only THEN
                PERFORM statesvc.make_append_only(format('statesvc.%I', partition_name)::regclass);
            END IF;
            EXECUTE format('ALTER TABLE statesvc.%I ATTACH PARTITION statesvc.%I FOR VALUES FROM (%L) TO (%L)',
                           p.table_name, partition_name, lower_bound, upper_bound);
            RETURN NEXT partition_name;
        END LOOP;
    END LOOP;
END
$$;
