-- migrate: no-transaction
-- The sealed log: which place each batch of entries has in the one Merkle tree, and the signed heads of that tree.
--
-- `batch` says what was committed, in no order. The sealer, one process at a time, gives the batches that it sees committed their
-- first index, one after the other without a gap; an entry's index is that plus its ordinal. It never waits for a batch that is still
-- on its way: that one comes later. So whoever reads by index misses nothing that commits late.
-- The tree's leaves are `batch.leaf_hashes`; of its inner nodes `subtree` keeps every eighth level.

-- Committed and not sealed yet: written by the transaction that writes the batch, deleted by the one that seals it. A queue of its own,
-- because no reader can tell from ids alone whether a lower one is still to come.
CREATE TABLE IF NOT EXISTS statesvc.unsealed (
    batch_id bigint PRIMARY KEY,
    recorded_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE OR REPLACE FUNCTION statesvc.await_sealing() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO statesvc.unsealed (batch_id, recorded_at) VALUES (NEW.batch_id, NEW.recorded_at);
    RETURN NULL;
END
$$;

-- A trigger, so that no writer can forget it, an older release's neither. Partitions get it from their parent.
CREATE OR REPLACE TRIGGER await_sealing AFTER INSERT ON statesvc.batch
    FOR EACH ROW EXECUTE FUNCTION statesvc.await_sealing();

-- `recorded_at` and `entries` repeat those of the batch. `sealed_at` is the same for all batches of one round, and grows from round to round.
CREATE TABLE IF NOT EXISTS statesvc.sealed_batch (
    first_index bigint PRIMARY KEY CHECK (first_index >= 0),
    batch_id bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    entries int NOT NULL CHECK (entries > 0),
    sealed_at timestamptz NOT NULL
);

-- Serves "where is this batch", and holds that no batch is sealed twice.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS sealed_batch_place ON statesvc.sealed_batch (batch_id) INCLUDE (first_index, sealed_at);

-- The node at `level` and `position` is the root over the leaves from position * 2^level, 2^level of them.
CREATE TABLE IF NOT EXISTS statesvc.subtree (
    level smallint NOT NULL CHECK (level > 0 AND level % 8 = 0),
    position bigint NOT NULL CHECK (position >= 0),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (level, position)
);

-- Signed tree heads, one a round, in the order in which they were published. `created_at` is the `sealed_at` of the round.
CREATE TABLE IF NOT EXISTS statesvc.checkpoint (
    tree_size bigint PRIMARY KEY CHECK (tree_size > 0),
    root bytea NOT NULL CHECK (octet_length(root) = 32),
    note text NOT NULL,
    created_at timestamptz NOT NULL UNIQUE
);

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statesvc.sealed_batch
    FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statesvc.subtree
    FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statesvc.checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();

-- The Ed25519 keys of checkpoints, the secret half under the master key. All that are not retired sign; a retired one has no secret left.
-- A new one is announced by an action in the log before it signs alone: so whoever trusts the old key can trust it.
CREATE TABLE IF NOT EXISTS statesvc.signing_key (
    key_id bytea PRIMARY KEY CHECK (octet_length(key_id) = 4),
    origin text NOT NULL,
    public_key bytea NOT NULL CHECK (octet_length(public_key) = 32),
    sealed_seed bytea,
    created_at timestamptz NOT NULL,
    retired_at timestamptz,
    CHECK ((sealed_seed IS NULL) = (retired_at IS NOT NULL))
);

-- From an index to its entries: the feed, the stream and the verifier read the log by batches.
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_batch ON statesvc.event (batch_id, ordinal);
CREATE INDEX CONCURRENTLY IF NOT EXISTS conflict_batch ON statesvc.conflict (batch_id, ordinal);
CREATE INDEX CONCURRENTLY IF NOT EXISTS transition_batch ON statesvc.transition (batch_id, ordinal);
CREATE INDEX CONCURRENTLY IF NOT EXISTS attempt_batch ON statesvc.attempt (batch_id, ordinal);

-- What was committed before there was a sealer. The trigger stands by now and has waited for every writer that began without it.
INSERT INTO statesvc.unsealed (batch_id, recorded_at)
SELECT b.batch_id, b.recorded_at FROM statesvc.batch b
WHERE NOT EXISTS (SELECT FROM statesvc.sealed_batch s WHERE s.batch_id = b.batch_id)
ON CONFLICT DO NOTHING;
