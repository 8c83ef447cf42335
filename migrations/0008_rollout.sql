-- Rolling out a normalizer, and learning a code without a deploy.
--
-- The dial gets a guard; what the candidate did is counted and compared beside the log, never in it: these tables are evidence
-- for a decision, they may be pruned. A mapping is the opposite: it decides how codes are read, so its rows are never changed;
-- the latest row of a code holds, and its revision stands in the normalizer version of the events that it read.

-- `turned_at`: since when candidate, share and guard are as they are; what the guard looks at begins there.
ALTER TABLE statesvc.rollout
    ADD COLUMN turned_at timestamptz,
    ADD COLUMN guard_messages int CHECK (guard_messages > 0),
    ADD COLUMN guard_errors_percent float8 CHECK (guard_errors_percent BETWEEN 0 AND 100),
    ADD COLUMN guard_differences_percent float8 CHECK (guard_differences_percent BETWEEN 0 AND 100),
    ADD CHECK (guard_messages IS NOT NULL OR (guard_errors_percent IS NULL AND guard_differences_percent IS NULL));

-- One row a batch that a candidate read: the guard's window. Only the newest rows are kept.
CREATE TABLE statesvc.rollout_tally (
    tally_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    messages int NOT NULL,
    errors int NOT NULL,
    differing int NOT NULL,
    PRIMARY KEY (carrier_id, tally_id)
);

-- Totals since the candidate was named. A row a worker, so that no two workers wait for each other. `measure`: messages,
-- errors, differing, or `field:` and the name of a field.
CREATE TABLE statesvc.rollout_count (
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    measure text NOT NULL,
    worker text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (carrier_id, candidate, measure, worker)
);

-- What the two versions read differently, field by field. Personal values are keyed digests. Only the newest rows are kept.
CREATE TABLE statesvc.rollout_diff (
    diff_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    carrier_id text NOT NULL,
    stable text NOT NULL,
    candidate text NOT NULL,
    event_id text,
    field text NOT NULL,
    stable_value text,
    candidate_value text,
    PRIMARY KEY (carrier_id, diff_id)
);

-- How a code is read whatever the normalizer says. `kind` NULL: as the normalizer says, again.
CREATE TABLE statesvc.code_mapping (
    revision bigint PRIMARY KEY CHECK (revision > 0),
    carrier_id text NOT NULL,
    raw_type text,
    raw_code text,
    kind text CHECK (kind IN ('scan', 'info')),
    status text CHECK (status <> 'unknown'),
    reason text,
    added_at timestamptz NOT NULL,
    added_by text NOT NULL,
    why text NOT NULL,
    CHECK (raw_type IS NOT NULL OR raw_code IS NOT NULL),
    CHECK ((kind IS NOT DISTINCT FROM 'scan') = (status IS NOT NULL)),
    CHECK (reason IS NULL OR status IS NOT NULL)
);
SELECT statesvc.make_append_only('statesvc.code_mapping');

-- A message that was read again may name more shipments than at first: its body's key is then wrapped under theirs too, so that
-- erasing any of them makes the body unreadable. As its owner, because the service may not change verdicts; adds names only, and
-- never brings back a key that was erased.
CREATE FUNCTION statesvc.name_shipments(p_message_id uuid, p_received_at timestamptz, p_shipments uuid[], p_sealed_key bytea) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE statesvc.message m SET shipments = p_shipments, sealed_key = p_sealed_key
    WHERE m.message_id = p_message_id AND m.received_at = p_received_at AND m.shipments <@ p_shipments AND m.sealed_key IS NOT NULL;
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION statesvc.name_shipments(uuid, timestamptz, uuid[], bytea) FROM PUBLIC;
