-- Sequences that are behind the highest value of their column, as a logical copy of the database leaves them: the next value exists already.
-- Each column is the first of an index, or of a table of few rows. The highest value is as of the snapshot and the sequence as of now, so an
-- insert that is under way is no fault.
CREATE FUNCTION statesvc.sequences_behind() RETURNS TABLE (sequence_name text, column_name text, next_value bigint, highest bigint)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_of record;
BEGIN
    FOR v_of IN
        SELECT s.oid::regclass AS sequence, t.oid::regclass AS owner, a.attname FROM pg_depend d
        JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_class t ON t.oid = d.refobjid
        JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND s.relnamespace = 'statesvc'::regnamespace
        ORDER BY s.relname
    LOOP
        EXECUTE format('SELECT (SELECT max(%I) FROM %s), s.last_value + CASE WHEN s.is_called THEN 1 ELSE 0 END FROM %s s',
            v_of.attname, v_of.owner, v_of.sequence) INTO highest, next_value;
        IF next_value <= highest THEN
            sequence_name := v_of.sequence::text;
            column_name := v_of.owner || '.' || quote_ident(v_of.attname);
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;
