-- Makes partitions ahead of time. They are made for the step that holds `clock()`, the one before it (two servers' clocks differ) and
-- the steps ahead (statesvc.partitioned). Returns the names of the new ones.
--
-- It runs as its owner, so that a worker without the owner's credentials keeps the horizon open: there is no default partition, so
-- where the horizon closes, every append stops. A partition is built as a table of its own, then attached, because
-- CREATE TABLE .. PARTITION OF would take an ACCESS EXCLUSIVE lock on the parent.
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
            -- not to_regclass: it would answer from the cache that the first check filled
            CONTINUE WHEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relname = partition_name);
            EXECUTE format('CREATE TABLE statesvc.%I (LIKE statesvc.%I INCLUDING ALL)', partition_name, p.table_name);
            PERFORM statesvc.sample_little(format('statesvc.%I', partition_name)::regclass);
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
