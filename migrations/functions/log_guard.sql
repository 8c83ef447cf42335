-- The guard of the log's tables (statesvc/database/log_guard.sql) refuses to change their definition unless that was announced. It consists
-- of event triggers, which only a superuser can make; the announcement is everybody's.

-- Allows this transaction to change the definition of the log's tables. The reason is recorded in the log together with the change.
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
