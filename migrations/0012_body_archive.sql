-- migrate: no-transaction
-- Where bodies are after their hot days. A day's partition is written to an archive file, the file is verified, what still waits is
-- kept apart (`body_kept`), and only then is the partition dropped; the file is deleted when its months are over. `body_archive` is the
-- ledger of that, one row a day; a legal hold exempts the messages of its shipments from the end.

CREATE TABLE IF NOT EXISTS statesvc.body_archive (
    day date PRIMARY KEY,
    begun_at timestamptz NOT NULL,
    file_name text,
    sha256 bytea CHECK (octet_length(sha256) = 32),
    size_bytes bigint,
    -- in the partition: written compressed, written as they were because they do not open, left out because their key was erased
    bodies bigint,
    compressed bigint,
    unopened bigint,
    erased bigint,
    written_at timestamptz,
    verified_at timestamptz,
    dropped_at timestamptz,
    expired_at timestamptz,
    deleted_at timestamptz,
    checked_at timestamptz,
    fault text,
    failures int NOT NULL DEFAULT 0,
    failed_at timestamptz,
    failure text,
    CHECK ((written_at IS NULL) = (file_name IS NULL)),
    CHECK (num_nulls(written_at, sha256, size_bytes, bodies, compressed, unopened, erased) IN (0, 7)),
    CHECK (bodies = compressed + unopened + erased),
    CHECK (verified_at IS NULL OR written_at IS NOT NULL),
    CHECK (dropped_at IS NULL OR verified_at IS NOT NULL),
    CHECK (expired_at IS NULL OR dropped_at IS NOT NULL),
    CHECK (deleted_at IS NULL OR expired_at IS NOT NULL)
);

-- Whose bodies must outlive every retention: all shipments that bear the number, those that come later too.
CREATE TABLE IF NOT EXISTS statesvc.legal_hold (
    legal_hold_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    carrier_id text NOT NULL,
    number text NOT NULL,
    tracking_number text NOT NULL,
    placed_at timestamptz NOT NULL,
    placed_by text NOT NULL,
    why text NOT NULL CHECK (why <> ''),
    released_at timestamptz,
    released_by text,
    released_why text,
    CHECK (num_nulls(released_at, released_by, released_why) IN (0, 3))
);
CREATE UNIQUE INDEX IF NOT EXISTS legal_hold_standing ON statesvc.legal_hold (carrier_id, number) WHERE released_at IS NULL;

-- Does a hold stand on any of these shipments? Whatever destroys a body or a key asks this first.
CREATE OR REPLACE FUNCTION statesvc.under_legal_hold(p_shipments uuid[]) RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM statesvc.legal_hold h JOIN statesvc.stream s ON s.carrier_id = h.carrier_id AND s.number = h.number
        WHERE h.released_at IS NULL AND s.shipment_id = ANY (p_shipments))
$$;

-- The letters of a message: its key while it is none of the inbox and none of the log.
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letter_of_message ON statesvc.dead_letter (message_id) WHERE kind = 'message';

-- Drops a day's partition of bodies, after keeping what still waits: in the inbox, or for a human. As its owner, like
-- ensure_partitions; so it believes nobody: the ledger must say that this very file was verified, with as many bodies as the partition has
-- now. Everything slow comes first; DROP then takes an ACCESS EXCLUSIVE lock on `body` for the few milliseconds to the commit, and gives
-- up rather than make ingest queue behind it for longer than `lock_timeout`. Returns how many bodies were kept.
CREATE OR REPLACE FUNCTION statesvc.drop_archived_day(p_day date, p_sha256 bytea) RETURNS bigint
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
    v_kept bigint;
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
        'INSERT INTO statesvc.body_kept (message_id, received_at, carrier_id, commitment, headers, sealed)
        SELECT b.message_id, b.received_at, b.carrier_id, b.commitment, b.headers, b.sealed FROM statesvc.%I b
        WHERE b.message_id IN (
            SELECT q.message_id FROM statesvc.inbox q WHERE q.received_at >= $1 AND q.received_at < $2
            UNION ALL
            SELECT d.message_id FROM statesvc.dead_letter d
            WHERE d.resolved_at IS NULL AND d.kind = ''message'' AND d.received_at >= $1 AND d.received_at < $2)
        ON CONFLICT DO NOTHING', v_partition) USING v_from, v_until;
    GET DIAGNOSTICS v_kept = ROW_COUNT;
    EXECUTE format('DROP TABLE statesvc.%I', v_partition);
    UPDATE statesvc.body_archive a SET dropped_at = statesvc.clock() WHERE a.day = p_day;
    RETURN v_kept;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.drop_archived_day(date, bytea) FROM PUBLIC;
