-- Triggers that guard and seal the log fire in every session: a data load, or a role with session_replication_role = replica, left them out.
-- Those that exist are switched over by functions/triggers.sql, which every migration runs.
CREATE OR REPLACE FUNCTION statesvc.make_append_only(target regclass) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change()', target);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER append_only', target);
END
$$;
