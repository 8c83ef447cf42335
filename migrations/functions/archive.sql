-- What destroys: dropping a day of bodies or a month of the log once it is in an archive file. Both functions run as their owner, like
-- ensure_partitions, so they trust no caller: the ledger must say that this very file was verified, with as many rows as the partitions
-- have now. Everything slow comes first. The ACCESS EXCLUSIVE locks are held for the few milliseconds to the commit, and each is given
-- up rather than make traffic queue behind it for longer than `lock_timeout`.

-- Is any of these shipments under a legal hold? Whatever destroys a body or a key asks this first.
CREATE FUNCTION statesvc.under_legal_hold(p_shipments uuid[]) RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM statesvc.legal_hold h JOIN statesvc.stream s ON s.carrier_id = h.carrier_id AND s.number = h.number
        WHERE h.released_at IS NULL AND s.shipment_id = ANY (p_shipments))
$$;

-- Drops a day's partition of bodies, after copying the bodies that still wait: in the inbox, or for a human. Returns how many it copied.
CREATE FUNCTION statesvc.drop_archived_day(p_day date, p_sha256 bytea) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '100ms'
    SET timezone = 'UTC' AS $$
DECLARE
    v_partition text := 'body_' || to_char(p_day, 'YYYYMMDD');
    v_from timestamptz := p_day;
    v_until timestamptz := p_day + 1;
    v_written bigint;
    v_counted bigint;
    v_retained bigint;
BEGIN
    SELECT a.bodies INTO v_written FROM statesvc.body_archive a
    WHERE a.day = p_day AND a.sha256 = p_sha256 AND a.verified_at IS NOT NULL AND a.dropped_at IS NULL FOR UPDATE;
    IF NOT FOUND OR p_day + 2 > statesvc.clock() THEN
        RAISE EXCEPTION 'the bodies of % stay: no verified archive of that day', p_day USING ERRCODE = 'SS003';
    END IF;
    EXECUTE format('SELECT count(*) FROM statesvc.%I', v_partition) INTO v_counted;
    IF v_counted <> v_written THEN
        RAISE EXCEPTION 'the bodies of % stay: % are in the partition, % were archived', p_day, v_counted, v_written USING ERRCODE = 'SS003';
    END IF;
    EXECUTE format(
        'INSERT INTO statesvc.body_retained (message_id, received_at, carrier_id, commitment, headers, sealed)
        SELECT b.message_id, b.received_at, b.carrier_id, b.commitment, b.headers, b.sealed FROM statesvc.%I b
        WHERE b.message_id IN (
            SELECT q.message_id FROM statesvc.inbox q WHERE q.received_at >= $1 AND q.received_at < $2
            UNION ALL
            SELECT d.message_id FROM statesvc.dead_letter d
            WHERE d.resolved_at IS NULL AND d.kind = ''message'' AND d.received_at >= $1 AND d.received_at < $2)
        ON CONFLICT (message_id) DO NOTHING', v_partition) USING v_from, v_until;
    GET DIAGNOSTICS v_retained = ROW_COUNT;
    EXECUTE format('DROP TABLE statesvc.%I', v_partition);
    UPDATE statesvc.body_archive a SET dropped_at = statesvc.clock() WHERE a.day = p_day;
    RETURN v_retained;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.drop_archived_day(date, bytea) FROM PUBLIC;

-- Replaces a month's partitions by ones that hold only what stays: the shipments of `log_resident`, conflicts between two shipments,
-- and the announcements of the log's keys. All or nothing. `p_active_since`: shipments of which something was recorded since then stay.
-- Returns how many shipments stay.
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
    v_retain_if text;
    v_kind text;
BEGIN
    SELECT * INTO v_ledger FROM statesvc.log_archive a
    WHERE a.month = p_month AND a.sha256 = p_sha256 AND a.verified_at IS NOT NULL AND a.dropped_at IS NULL
        AND a.leaving_at + interval '1 minute' <= statesvc.clock() AND a.ends + interval '1 day' <= statesvc.clock()
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the log of % stays: no verified archive of that month that was given notice', p_month USING ERRCODE = 'SS003';
    END IF;
    -- readers of the whole log (verify, rebuild) hold the shared one
    IF NOT pg_try_advisory_xact_lock(hashtextextended('statesvc.log_months', 0)) THEN
        RAISE EXCEPTION 'the log of % stays for now: the whole log is being read', p_month USING ERRCODE = 'lock_not_available';
    END IF;
    PERFORM statesvc.announce_log_ddl(format('the log of %s is archived, SHA-256 %s', to_char(p_month, 'YYYY-MM'), encode(p_sha256, 'hex')));
    -- nobody brings a shipment back meanwhile
    LOCK TABLE statesvc.log_resident IN SHARE ROW EXCLUSIVE MODE;
    EXECUTE format(
        'INSERT INTO statesvc.log_resident (shipment_id, month, retained_at, why)
        SELECT s.shipment_id, $1, statesvc.clock(), CASE
            WHEN EXISTS (SELECT FROM statesvc.legal_hold h
                WHERE h.released_at IS NULL AND h.carrier_id = s.carrier_id AND h.number = s.number) THEN ''held''
            WHEN s.recorded_at >= $3 THEN ''active'' ELSE ''unread'' END
        FROM statesvc.stream s
        WHERE s.version > 0 AND s.first_recorded_at < $2 AND (
            s.recorded_at >= $3
            OR EXISTS (SELECT FROM statesvc.legal_hold h
                WHERE h.released_at IS NULL AND h.carrier_id = s.carrier_id AND h.number = s.number)
            OR s.shipment_id IN (SELECT e.shipment_id FROM statesvc.event_%s e
                WHERE (e.kind = ''unmapped'' OR e.by_category) AND EXISTS (SELECT FROM statesvc.dead_letter d
                    WHERE d.kind = ''code'' AND d.resolved_at IS NULL AND d.carrier_id = e.carrier_id))
            OR s.shipment_id IN (SELECT d.shipment_id FROM statesvc.dead_letter d WHERE d.kind = ''notification'' AND d.resolved_at IS NULL)
            OR s.shipment_id IN (SELECT o.shipment_id FROM statesvc.outbox o))
        ON CONFLICT (shipment_id, month) DO NOTHING', v_suffix) USING p_month, v_ledger.ends, p_active_since;
    -- notifications leave with the fan-outs that made them, and come back with them; those of observations stay
    FOREACH v_kind IN ARRAY ARRAY['notification', 'notification_gap'] LOOP
        EXECUTE format(
            'DELETE FROM statesvc.%I n USING statesvc.%I f
            WHERE n.shipment_id = f.shipment_id AND n.sequence = f.sequence AND n.subscription_id = ANY (f.subscriptions)
                AND f.sequence > 0 AND NOT f.replayed
                AND f.shipment_id NOT IN (SELECT r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)',
            v_kind, 'fanout_' || v_suffix) USING p_month;
    END LOOP;
    FOREACH v_kind IN ARRAY ARRAY['event', 'conflict', 'transition', 'fanout', 'attempt', 'observation', 'action'] LOOP
        EXECUTE format('SELECT count(*) FROM statesvc.%I', v_kind || '_' || v_suffix) INTO v_count;
        v_counted := v_counted || v_count;
        v_retain_if := CASE v_kind
            WHEN 'action' THEN 'x.verb IN (''log.fork'', ''subscription.delete'') OR x.verb LIKE ''log\_key.%%'' OR x.target IN
                (SELECT ''shipment '' || r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)'
            WHEN 'conflict' THEN 'x.claimed_shipment_id <> x.shipment_id
                OR x.shipment_id IN (SELECT r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)'
            ELSE 'x.shipment_id IN (SELECT r.shipment_id FROM statesvc.log_resident r WHERE r.month = $1)' END;
        EXECUTE format('CREATE TABLE statesvc.%I (LIKE statesvc.%I INCLUDING ALL)', v_kind || '_' || v_suffix || '_retained', v_kind);
        EXECUTE format('INSERT INTO statesvc.%I SELECT x.* FROM statesvc.%I x WHERE ' || v_retain_if,
            v_kind || '_' || v_suffix || '_retained', v_kind || '_' || v_suffix) USING p_month;
        PERFORM statesvc.make_append_only(format('statesvc.%I', v_kind || '_' || v_suffix || '_retained')::regclass);
    END LOOP;
    IF v_counted <> ARRAY[v_ledger.events, v_ledger.conflicts, v_ledger.transitions, v_ledger.fanouts, v_ledger.attempts,
            v_ledger.observations, v_ledger.actions] THEN
        RAISE EXCEPTION 'the log of % stays: it has % entries by kind, others were archived', p_month, v_counted USING ERRCODE = 'SS003';
    END IF;
    LOCK TABLE statesvc.event, statesvc.conflict, statesvc.transition, statesvc.fanout, statesvc.attempt, statesvc.observation,
        statesvc.action IN ACCESS EXCLUSIVE MODE;
    FOREACH v_kind IN ARRAY ARRAY['event', 'conflict', 'transition', 'fanout', 'attempt', 'observation', 'action'] LOOP
        EXECUTE format('ALTER TABLE statesvc.%I DETACH PARTITION statesvc.%I', v_kind, v_kind || '_' || v_suffix);
        EXECUTE format('DROP TABLE statesvc.%I', v_kind || '_' || v_suffix);
        EXECUTE format('ALTER TABLE statesvc.%I RENAME TO %I', v_kind || '_' || v_suffix || '_retained', v_kind || '_' || v_suffix);
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

-- Takes the oldest month of verdicts whose bodies all expired three months ago out of the database, but for those whose body is retained (a
-- legal hold): until then a verdict says what became of its body. All or nothing. Returns the month; NULL: none is due.
CREATE FUNCTION statesvc.drop_expired_messages() RETURNS date
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '100ms'
    SET timezone = 'UTC' AS $$
DECLARE
    v_month date;
    v_partition text;
    v_ends date;
    v_due boolean;
BEGIN
    FOR v_month IN
        SELECT to_date(right(c.relname, 6), 'YYYYMM') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'statesvc.message'::regclass ORDER BY 1
    LOOP
        v_partition := 'message_' || to_char(v_month, 'YYYYMM');
        v_ends := v_month + interval '1 month';
        -- what was received last may be settled a while later
        EXIT WHEN v_ends + interval '1 month' > statesvc.clock()
            OR EXISTS (SELECT FROM statesvc.body b WHERE b.received_at >= v_month AND b.received_at < v_ends)
            OR EXISTS (SELECT FROM statesvc.inbox q WHERE q.received_at >= v_month AND q.received_at < v_ends)
            OR EXISTS (SELECT FROM statesvc.body_archive a WHERE a.day >= v_month AND a.day < v_ends
                AND (a.expired_at IS NULL OR a.expired_at + interval '3 months' > statesvc.clock()));
        EXECUTE format('SELECT EXISTS (SELECT FROM statesvc.%I m WHERE NOT EXISTS (
            SELECT FROM statesvc.body_retained k WHERE k.message_id = m.message_id))', v_partition) INTO v_due;
        CONTINUE WHEN NOT v_due;
        EXECUTE format('CREATE TABLE statesvc.%I (LIKE statesvc.message INCLUDING ALL)', v_partition || '_retained');
        PERFORM statesvc.sample_little(format('statesvc.%I', v_partition || '_retained')::regclass);
        LOCK TABLE statesvc.message IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('INSERT INTO statesvc.%I SELECT m.* FROM statesvc.%I m JOIN statesvc.body_retained k ON k.message_id = m.message_id',
            v_partition || '_retained', v_partition);
        EXECUTE format('ALTER TABLE statesvc.message DETACH PARTITION statesvc.%I', v_partition);
        EXECUTE format('DROP TABLE statesvc.%I', v_partition);
        EXECUTE format('ALTER TABLE statesvc.%I RENAME TO %I', v_partition || '_retained', v_partition);
        EXECUTE format('ALTER TABLE statesvc.message ATTACH PARTITION statesvc.%I FOR VALUES FROM (%L) TO (%L)', v_partition, v_month, v_ends);
        RETURN v_month;
    END LOOP;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.drop_expired_messages() FROM PUBLIC;
