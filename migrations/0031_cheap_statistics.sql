-- Statistics that cost little.
--
-- Autovacuum analyzes a table once a tenth of it is new, which in a flood is every ten seconds. With PostgreSQL's default it reads 30,000
-- rows and sorts each of their columns: a second of a processor for all tables, and where there are two, webhooks wait behind it
-- (docs/decisions/0022-express.md). What is asked here goes by keys, so a fifth of the default will do, and none for bytes.

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

-- As in 0001; a new partition has to be told, for LIKE does not copy it.
CREATE OR REPLACE FUNCTION statesvc.ensure_partitions() RETURNS SETOF text
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

-- Partitions that there are get it from their parents. The lock lets traffic by.
SELECT statesvc.sample_little(c.oid) FROM pg_class c
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition;
