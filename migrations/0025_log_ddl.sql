-- Changing the definition of the log's tables has to be announced, where the guard stands (statesvc/database/guard.sql: event triggers,
-- which only a superuser can make). Here is the announcement.

-- Allows this transaction to change the definition of the log's tables. The reason stands in the log beside what was done.
CREATE FUNCTION statesvc.announce_log_ddl(why text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(btrim(why), '') = '' THEN
        RAISE EXCEPTION 'say why the log''s tables are to be changed' USING ERRCODE = '22023';
    END IF;
    PERFORM set_config('statesvc.log_ddl', why, true);
END
$$;
