-- Where months of the log are after their hot ones. A month's entries are written to a Parquet file, the file is compared with the
-- partitions, and these are then replaced by small ones that hold only what must stay at hand. `batch` stays whole: it holds the leaves of
-- the tree, so every proof is made as before. `log_archive` is the ledger, one row a month, a time a step.
--
-- No reader may see a log that is silently shorter. From `leaving_at` on a month counts as gone: whoever reads a shipment looks for its
-- row in `log_resident` first, and without one brings its entries back. The partitions go a minute later, when nobody is left who looked
-- before.

CREATE TABLE statesvc.log_archive (
    month date PRIMARY KEY CHECK (extract(day FROM month) = 1),
    begins timestamptz NOT NULL,
    ends timestamptz NOT NULL CHECK (ends > begins),
    begun_at timestamptz NOT NULL,
    file_name text,
    sha256 bytea CHECK (octet_length(sha256) = 32),
    index_sha256 bytea CHECK (octet_length(index_sha256) = 32),
    size_bytes bigint,
    -- the head that the file was held against
    tree_size bigint,
    first_index bigint,
    last_index bigint,
    first_batch bigint,
    last_batch bigint,
    events bigint,
    conflicts bigint,
    transitions bigint,
    attempts bigint,
    actions bigint,
    written_at timestamptz,
    verified_at timestamptz,
    leaving_at timestamptz,
    dropped_at timestamptz,
    failures int NOT NULL DEFAULT 0,
    failed_at timestamptz,
    failure text,
    CHECK (num_nulls(written_at, file_name, sha256, index_sha256, size_bytes, tree_size, first_index, last_index, first_batch, last_batch,
        events, conflicts, transitions, attempts, actions) IN (0, 15)),
    CHECK (tree_size > last_index AND last_index >= first_index),
    CHECK (verified_at IS NULL OR written_at IS NOT NULL),
    CHECK (leaving_at IS NULL OR verified_at IS NOT NULL),
    CHECK (dropped_at IS NULL OR leaving_at IS NOT NULL)
);

-- Whose entries of an archived month are in the database too: kept there when the month went, or brought back since.
CREATE TABLE statesvc.log_resident (
    shipment_id uuid NOT NULL,
    month date NOT NULL REFERENCES statesvc.log_archive,
    kept_at timestamptz NOT NULL,
    why text NOT NULL CHECK (why IN ('held', 'active', 'unread', 'asked')),
    PRIMARY KEY (shipment_id, month)
);

-- Replaces a month's partitions by ones that hold only what stays: the shipments of `log_resident`, contradictions between two shipments,
-- and the announcements of the log's keys. As its owner, like drop_archived_day, so it believes nobody: the ledger must say that this very
-- file was verified, with as many entries as the partitions have now. All or nothing, and everything slow comes first: the ACCESS EXCLUSIVE
-- locks are held for the milliseconds to the commit, and no append queues behind them for longer than `lock_timeout` each.
-- `p_active_since`: shipments of which something was said since then stay. Answers how many shipments stay.
CREATE FUNCTION statesvc.drop_log_month(p_month date, p_sha256 bytea, p_active_since timestamptz) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '100ms'
    SET timezone = 'UTC' AS $$
DECLARE
    v_ledger statesvc.log_archive;
    v_suffix text := to_char(p_month, 'YYYYMM');
    v_counted bigint[] := '{}';
    v_count bigint;
    v_stay bigint;
    v_kept text;
    v_kind text;
BEGIN
    SELECT * INTO v_ledger FROM statesvc.log_archive a
    WHERE a.month = p_month AND a.sha256 = p_sha256 AND a.verified_at IS NOT NULL AND a.dropped_at IS NULL
        AND a.leaving_at + interval '1 minute' <= statesvc.clock() AND a.ends + interval '1 day' <= statesvc.clock()
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the log of % stays: no verified archive of that month that was given notice', p_month USING ERRCODE = 'SS003';
    END IF;
    -- whoever reads the log as a whole (verify, rebuild) holds the shared one
    IF NOT pg_try_advisory_xact_lock(hashtextextended('statesvc.log_months', 0)) THEN
        RAISE EXCEPTION 'the log of % stays for now: somebody reads the whole log', p_month USING ERRCODE = 'lock_not_available';
    END IF;
    PERFORM statesvc.announce_log_ddl(format('the log of %s is archived, SHA-256 %s', to_char(p_month, 'YYYY-MM'), encode(p_sha256, 'hex')));
    -- nobody brings a shipment back meanwhile
    LOCK TABLE statesvc.log_resident IN SHARE ROW EXCLUSIVE MODE;
    EXECUTE format(
        'INSERT INTO statesvc.log_resident (shipment_id, month, kept_at, why)
        SELECT s.shipment_id, $1, statesvc.clock(), CASE
            WHEN EXISTS (SELECT FROM statesvc.legal_hold h
                WHERE h.released_at IS NULL AND h.carrier_id = s.carrier_id AND h.number = s.number) THEN ''held''
            WHEN s.recorded_at >= $3 THEN ''active'' ELSE ''unread'' END
        FROM statesvc.stream s
        WHERE s.first_recorded_at < $2 AND (
            s.recorded_at >= $3
            OR EXISTS (SELECT FROM statesvc.legal_hold h
                WHERE h.released_at IS NULL AND h.carrier_id = s.carrier_id AND h.number = s.number)
            OR s.shipment_id IN (SELECT e.shipment_id FROM statesvc.event_%s e
                WHERE e.kind = ''unmapped'' AND EXISTS (SELECT FROM statesvc.dead_letter d
                    WHERE d.kind = ''code'' AND d.resolved_at IS NULL AND d.carrier_id = e.carrier_id))
            OR s.shipment_id IN (SELECT d.shipment_id FROM statesvc.dead_letter d WHERE d.kind = ''notification'' AND d.resolved_at IS NULL)
            OR s.shipment_id IN (SELECT o.shipment_id FROM statesvc.outbox o))
        ON CONFLICT DO NOTHING', v_suffix) USING p_month, v_ledger.ends, p_active_since;
    FOREACH v_kind IN ARRAY ARRAY['event', 'conflict', 'transition', 'attempt', 'action'] LOOP
        EXECUTE format('SELECT count(*) FROM statesvc.%I', v_kind || '_' || v_suffix) INTO v_count;
        v_counted := v_counted || v_count;
        v_kept := CASE v_kind
            WHEN 'action' THEN 'x.verb LIKE ''log\_key.%%'' OR x.target IN
                (SELECT ''shipment '' || r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)'
            WHEN 'conflict' THEN 'x.claimed_shipment_id <> x.shipment_id
                OR x.shipment_id IN (SELECT r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)'
            ELSE 'x.shipment_id IN (SELECT r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)' END;
        EXECUTE format('CREATE TABLE statesvc.%I (LIKE statesvc.%I INCLUDING ALL)', v_kind || '_' || v_suffix || '_kept', v_kind);
        EXECUTE format('INSERT INTO statesvc.%I SELECT x.* FROM statesvc.%I x WHERE ' || v_kept,
            v_kind || '_' || v_suffix || '_kept', v_kind || '_' || v_suffix) USING p_month;
        PERFORM statesvc.make_append_only(format('statesvc.%I', v_kind || '_' || v_suffix || '_kept')::regclass);
    END LOOP;
    IF v_counted <> ARRAY[v_ledger.events, v_ledger.conflicts, v_ledger.transitions, v_ledger.attempts, v_ledger.actions] THEN
        RAISE EXCEPTION 'the log of % stays: it has % entries by kind, others were archived', p_month, v_counted USING ERRCODE = 'SS003';
    END IF;
    LOCK TABLE statesvc.event, statesvc.conflict, statesvc.transition, statesvc.attempt, statesvc.action IN ACCESS EXCLUSIVE MODE;
    FOREACH v_kind IN ARRAY ARRAY['event', 'conflict', 'transition', 'attempt', 'action'] LOOP
        EXECUTE format('ALTER TABLE statesvc.%I DETACH PARTITION statesvc.%I', v_kind, v_kind || '_' || v_suffix);
        EXECUTE format('DROP TABLE statesvc.%I', v_kind || '_' || v_suffix);
        EXECUTE format('ALTER TABLE statesvc.%I RENAME TO %I', v_kind || '_' || v_suffix || '_kept', v_kind || '_' || v_suffix);
        EXECUTE format('ALTER TABLE statesvc.%I ATTACH PARTITION statesvc.%I FOR VALUES FROM (%L) TO (%L)',
            v_kind, v_kind || '_' || v_suffix, v_ledger.begins, v_ledger.ends);
    END LOOP;
    -- what else the transaction does is no part of this
    PERFORM set_config('statesvc.log_ddl', '', true);
    UPDATE statesvc.log_archive a SET dropped_at = statesvc.clock() WHERE a.month = p_month;
    SELECT count(*) INTO v_stay FROM statesvc.log_resident r WHERE r.month = p_month;
    RETURN v_stay;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.drop_log_month(date, bytea, timestamptz) FROM PUBLIC;
