-- Has every trigger of the schema fire in every session, whatever a data load or a restore left of them. Returns those that it switched.
-- For the owner; the triggers of foreign keys are the server's own, and only a superuser can switch them.
CREATE FUNCTION statesvc.enable_triggers() RETURNS SETOF text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_of record;
BEGIN
    FOR v_of IN
        SELECT t.tgname, c.oid::regclass AS owner FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = 'statesvc'::regnamespace AND NOT t.tgisinternal AND t.tgenabled <> 'A'
        ORDER BY c.relname, t.tgname
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', v_of.owner, v_of.tgname);
        RETURN NEXT format('%s on %s', v_of.tgname, v_of.owner);
    END LOOP;
END
$$;
