-- What a database loses that is copied row by row: a batch id that exists is never given out again, wherever the sequence stands, and triggers
-- that guard and seal the log fire in every session.

-- As an identity's does, the sequence belongs to its column: the catalog alone says which column each sequence of the schema must be ahead of
-- (functions/sequences.sql).
ALTER SEQUENCE statesvc.batch_id_seq OWNED BY statesvc.batch.batch_id;

-- A lower id than a sealed one would break the order of a shipment's versions too where it was free.
CREATE OR REPLACE FUNCTION statesvc.next_batch_id() RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    v_sealed bigint;
    v_batch_id bigint;
BEGIN
    PERFORM pg_current_xact_id();
    -- before the sequence moves: later ids may be sealed at once
    SELECT max(s.batch_id) INTO v_sealed FROM statesvc.sealed_batch s;
    v_batch_id := nextval('statesvc.batch_id_seq');
    IF v_batch_id <= v_sealed THEN
        RAISE EXCEPTION 'statesvc.batch_id_seq is behind: % was the next value, and % is sealed', v_batch_id, v_sealed
            USING ERRCODE = 'SS006', HINT = format('SELECT setval(''statesvc.batch_id_seq'', %s)', v_sealed);
    END IF;
    RETURN v_batch_id;
END
$$;

-- Each batch is queued or sealed, so these two unique keys say for all partitions which ids exist.
CREATE OR REPLACE FUNCTION statesvc.await_sealing() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    -- a logical replica gets the rows of the queue from the server that it copies
    IF current_setting('session_replication_role') = 'replica' AND EXISTS (
        SELECT FROM pg_stat_subscription s WHERE s.pid = pg_backend_pid()
    ) THEN
        RETURN NULL;
    END IF;
    INSERT INTO statesvc.unsealed (batch_id, recorded_from) VALUES (NEW.batch_id, NEW.recorded_from);
    -- after the insert, which waits for a sealer that takes the same id out of the queue
    IF EXISTS (SELECT FROM statesvc.sealed_batch s WHERE s.batch_id = NEW.batch_id) THEN
        RAISE EXCEPTION 'batch % exists already', NEW.batch_id USING ERRCODE = 'SS006';
    END IF;
    RETURN NULL;
END
$$;

DO $$
BEGIN
    -- it writes batches too (statesvc/database/log_guard.sql)
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'statesvc_guard') THEN
        GRANT SELECT ON statesvc.sealed_batch TO statesvc_guard;
    END IF;
END
$$;

-- Triggers that exist are switched over by functions/triggers.sql, which every migration runs.
CREATE OR REPLACE FUNCTION statesvc.make_append_only(target regclass) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change()', target);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER append_only', target);
END
$$;
