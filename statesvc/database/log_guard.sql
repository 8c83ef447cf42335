-- The guard of the log's tables: event triggers that refuse to drop, alter or rewrite them, or to take their triggers away, in any
-- transaction that did not announce it (`statesvc.announce_log_ddl(why)`; our own commands do), and that write into the log what was
-- done to them under an announcement.
--
-- Run it as a superuser on the database of statesvc once `statesvc migrate` was there: PostgreSQL lets nobody else make event triggers. Where a
-- provider lets its master do so, that role runs it, as a member of the tables' owner (docs/managed.md). It may run again, and takes effect at
-- once. It stops mistakes, scripts and tools, the owner's too; not a superuser who means it (SET event_triggers = off):
-- what such a one changes is found by `statesvc verify`.
--
-- Its functions belong to a role of its own that may add to the log and do nothing else. So nothing that the tables' owner wrote ever
-- runs with the rights of a superuser who happens to work in this database.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'statesvc_guard') THEN
        CREATE ROLE statesvc_guard NOLOGIN;
    END IF;
    IF NOT pg_has_role('statesvc_guard', 'USAGE') THEN
        -- a master that is no superuser may not act as a role only because it made it
        EXECUTE format('GRANT statesvc_guard TO %I WITH SET TRUE, INHERIT TRUE', current_user);
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL; -- created for another database at the same time
END
$$;

CREATE SCHEMA IF NOT EXISTS statesvc_guard AUTHORIZATION statesvc_guard;
GRANT USAGE ON SCHEMA statesvc TO statesvc_guard;
GRANT INSERT ON statesvc.batch, statesvc.action, statesvc.unsealed TO statesvc_guard;
GRANT SELECT ON statesvc.log_epoch, statesvc.sealed_batch TO statesvc_guard;
GRANT USAGE ON SEQUENCE statesvc.batch_id_seq TO statesvc_guard;

-- Whether a table of this name is of the log, or one of its partitions.
CREATE OR REPLACE FUNCTION statesvc_guard.is_log(p_schema text, p_table text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN p_schema = 'statesvc' AND p_table ~
        '^(batch|event|event_key|conflict|transition|fanout|attempt|observation|action|sealed_batch|subtree|checkpoint|checkpoint_stamp|code_mapping|log_epoch)(_[0-9]{6,8})?$';

-- The same of a table that exists, whatever it is called by now: it bears the trigger.
CREATE OR REPLACE FUNCTION statesvc_guard.is_log(p_table oid) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = p_table AND statesvc_guard.is_log(n.nspname::text, c.relname::text)
        ) OR EXISTS (
            SELECT FROM pg_catalog.pg_trigger t
            JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
            WHERE t.tgrelid = p_table AND n.nspname = 'statesvc' AND p.proname = 'refuse_change'
        );
    END;

-- Functions that the log's promises rest on.
CREATE OR REPLACE FUNCTION statesvc_guard.is_pillar(p_schema text, p_function text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN p_schema = 'statesvc' AND p_function IN ('refuse_change', 'refuse_unpacked', 'await_sealing', 'make_append_only', 'ensure_partitions', 'clock', 'next_batch_id');

-- Whether the command is one of those that make partitions ahead, which adds to the log's tables and takes nothing away.
CREATE OR REPLACE FUNCTION statesvc_guard.makes_partitions() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_stack text;
BEGIN
    GET DIAGNOSTICS v_stack = PG_CONTEXT;
    RETURN strpos(v_stack, ' statesvc.ensure_partitions() ') > 0;
END
$$;

-- Refuses what was not announced.
CREATE OR REPLACE FUNCTION statesvc_guard.require_announcement(p_command text, p_touched text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(current_setting('statesvc.log_ddl', true), '') = '' THEN
        RAISE EXCEPTION '% is refused: % belongs to the log', p_command, p_touched
            USING ERRCODE = 'SS001', HINT = 'In the same transaction, before it: SELECT statesvc.announce_log_ddl(''why'').';
    END IF;
END
$$;

-- Writes into the log what was done under an announcement. Never stands in the way: what cannot be written goes to the server's log.
CREATE OR REPLACE FUNCTION statesvc_guard.record(p_command text, p_touched text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_why text := current_setting('statesvc.log_ddl', true);
    v_actor text := 'database role ' || session_user;
    v_at timestamptz;
    v_batch_id bigint;
    v_canonical bytea;
BEGIN
    v_at := statesvc.clock();
    v_batch_id := statesvc.next_batch_id();
    -- RFC 8785: members by name, no white space; to_json escapes text as it asks
    v_canonical := convert_to(format(
        '{"actor":%s,"details":{"command":%s,"why":%s},"entry":"action",%s"format":1,"recorded_at":"%s","target":%s,"verb":"log_ddl"}',
        to_json(v_actor), to_json(p_command), to_json(v_why), (SELECT '"epoch":' || nullif(max(e.epoch), 1) || ',' FROM statesvc.log_epoch e), to_char(v_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
        to_json(p_touched)), 'UTF8');
    INSERT INTO statesvc.action (recorded_at, batch_id, ordinal, actor, verb, target, canonical)
    VALUES (v_at, v_batch_id, 0, v_actor, 'log_ddl', p_touched, v_canonical);
    INSERT INTO statesvc.batch (batch_id, recorded_from, recorded_to, entries, leaf_hashes, writer)
    VALUES (v_batch_id, v_at, v_at, 1, sha256('\x00'::bytea || v_canonical), v_actor);
EXCEPTION WHEN OTHERS THEN
    RAISE LOG 'statesvc guard: % on % by % (%), which could not be written into the log: %', p_command, p_touched, session_user, v_why, SQLERRM;
END
$$;

-- After a command: did it change the definition of a table of the log, or of what guards it?
CREATE OR REPLACE FUNCTION statesvc_guard.look_at_command() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_touched text;
BEGIN
    IF tg_tag IN ('COMMENT', 'REINDEX', 'SECURITY LABEL') THEN
        RETURN;
    END IF;
    IF tg_tag = 'GRANT' THEN
        -- it does not say on what; so look who may change the log now
        SELECT string_agg(DISTINCT c.oid::regclass::text, ', ') INTO v_touched
        FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL
        CROSS JOIN LATERAL (
            SELECT x.grantee, x.privilege_type FROM aclexplode(c.relacl) x
            UNION ALL
            SELECT x.grantee, x.privilege_type FROM aclexplode(a.attacl) x
        ) g
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'statesvc'::regnamespace AND g.grantee <> c.relowner
            AND g.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER') AND statesvc_guard.is_log(c.oid);
    ELSE
        SELECT string_agg(DISTINCT c.object_identity, ', ') INTO v_touched
        FROM pg_event_trigger_ddl_commands() c
        LEFT JOIN pg_index i ON c.classid = 'pg_class'::regclass AND i.indexrelid = c.objid
        LEFT JOIN pg_trigger t ON c.classid = 'pg_trigger'::regclass AND t.oid = c.objid
        LEFT JOIN pg_rewrite r ON c.classid = 'pg_rewrite'::regclass AND r.oid = c.objid
        LEFT JOIN pg_policy o ON c.classid = 'pg_policy'::regclass AND o.oid = c.objid
        LEFT JOIN pg_proc p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
        WHERE statesvc_guard.is_log(coalesce(i.indrelid, t.tgrelid, r.ev_class, o.polrelid, c.objid))
            OR statesvc_guard.is_pillar(p.pronamespace::regnamespace::text, p.proname::text)
            OR (c.classid = 'pg_namespace'::regclass AND c.objid = (SELECT n.oid FROM pg_namespace n JOIN pg_proc k ON k.pronamespace = n.oid
                WHERE k.proname = 'announce_log_ddl' LIMIT 1));
    END IF;
    IF v_touched IS NOT NULL AND NOT statesvc_guard.makes_partitions() THEN
        PERFORM statesvc_guard.require_announcement(tg_tag, v_touched);
        IF tg_tag <> 'GRANT' THEN
            PERFORM statesvc_guard.record(tg_tag, v_touched);
        END IF;
    END IF;
END
$$;

-- After a command that dropped something.
CREATE OR REPLACE FUNCTION statesvc_guard.look_at_drop() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_touched text;
BEGIN
    SELECT string_agg(DISTINCT CASE d.object_type WHEN 'function' THEN d.object_identity ELSE d.address_names[1] || '.' || d.address_names[2] END, ', ')
    INTO v_touched
    FROM pg_event_trigger_dropped_objects() d
    WHERE (d.object_type IN ('table', 'table column', 'table constraint', 'trigger', 'rule', 'policy', 'default value')
            AND statesvc_guard.is_log(d.address_names[1], d.address_names[2]))
        OR (d.object_type = 'function' AND statesvc_guard.is_pillar(d.schema_name, substring(d.object_identity FROM '\.(\w+)\(')));
    IF v_touched IS NOT NULL THEN
        PERFORM statesvc_guard.require_announcement(tg_tag, v_touched);
        -- what else drops, such as ALTER TABLE, is written down at its end
        IF tg_tag LIKE 'DROP %' THEN
            PERFORM statesvc_guard.record(tg_tag, v_touched);
        END IF;
    END IF;
END
$$;

-- Before a table is written anew.
CREATE OR REPLACE FUNCTION statesvc_guard.look_at_rewrite() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF statesvc_guard.is_log(pg_event_trigger_table_rewrite_oid()) THEN
        PERFORM statesvc_guard.require_announcement(tg_tag, pg_event_trigger_table_rewrite_oid()::regclass::text);
    END IF;
END
$$;

DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'statesvc_guard'::regnamespace LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO statesvc_guard', v_function);
    END LOOP;
END
$$;

DROP EVENT TRIGGER IF EXISTS statesvc_guard_command;
DROP EVENT TRIGGER IF EXISTS statesvc_guard_drop;
DROP EVENT TRIGGER IF EXISTS statesvc_guard_rewrite;
CREATE EVENT TRIGGER statesvc_guard_command ON ddl_command_end EXECUTE FUNCTION statesvc_guard.look_at_command();
CREATE EVENT TRIGGER statesvc_guard_drop ON sql_drop EXECUTE FUNCTION statesvc_guard.look_at_drop();
CREATE EVENT TRIGGER statesvc_guard_rewrite ON table_rewrite EXECUTE FUNCTION statesvc_guard.look_at_rewrite();
ALTER EVENT TRIGGER statesvc_guard_command ENABLE ALWAYS;
ALTER EVENT TRIGGER statesvc_guard_drop ENABLE ALWAYS;
ALTER EVENT TRIGGER statesvc_guard_rewrite ENABLE ALWAYS;
