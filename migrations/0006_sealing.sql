-- The sealed log: which place each batch of entries has in the one Merkle tree, and the signed heads of that tree.
--
-- `batch` says what was committed, in no order. The sealer, one process at a time, gives the batches that it sees committed their
-- first index, one after the other without a gap; an entry's index is that plus its ordinal. It never waits for a batch that is not
-- committed yet: that one comes later. So a reader by index misses nothing that commits late.
-- A pass takes what one snapshot shows, in the order of the batch ids. The writer of a shipment's version 4 saw version 3 committed, and
-- took the higher batch id: no snapshot shows 4 without 3, so a shipment's versions ascend with the index, whatever commits late.
-- The tree's leaves are `batch.leaf_hashes`; of its inner nodes `subtree` keeps every eighth level.

-- Committed and not sealed yet: written by the transaction that writes the batch, deleted by the one that seals it. A queue of its
-- own, because ids alone do not show whether a lower one is still to come.
CREATE TABLE statesvc.unsealed (
    batch_id bigint PRIMARY KEY,
    recorded_from timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION statesvc.await_sealing() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO statesvc.unsealed (batch_id, recorded_from) VALUES (NEW.batch_id, NEW.recorded_from);
    RETURN NULL;
END
$$;

-- A trigger, so that no writer can forget it. Partitions get it from their parent.
CREATE TRIGGER await_sealing AFTER INSERT ON statesvc.batch
    FOR EACH ROW EXECUTE FUNCTION statesvc.await_sealing();

-- `recorded_from`, `recorded_to` and `entries` repeat those of the batch. `sealed_at` is the same for all batches that were sealed together, and grows
-- from one sealing to the next.
CREATE TABLE statesvc.sealed_batch (
    first_index bigint PRIMARY KEY CHECK (first_index >= 0),
    batch_id bigint NOT NULL,
    recorded_from timestamptz NOT NULL,
    recorded_to timestamptz NOT NULL,
    entries int NOT NULL CHECK (entries > 0),
    sealed_at timestamptz NOT NULL
);
-- Answers where a batch is, and ensures that none is sealed twice.
CREATE UNIQUE INDEX sealed_batch_place ON statesvc.sealed_batch (batch_id) INCLUDE (first_index, sealed_at);
SELECT statesvc.make_append_only('statesvc.sealed_batch');

-- The node at `level` and `position` is the root over 2^level leaves, the first of them at position * 2^level. A proof reads hundreds that
-- are neighbours in the key, but not in the table.
CREATE TABLE statesvc.subtree (
    level smallint NOT NULL CHECK (level > 0 AND level % 8 = 0),
    position bigint NOT NULL CHECK (position >= 0),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (level, position) INCLUDE (hash)
);
SELECT statesvc.make_append_only('statesvc.subtree');

-- Signed tree heads, one per sealing, in the order in which they were published. `created_at` is the `sealed_at` of its batches.
CREATE TABLE statesvc.checkpoint (
    tree_size bigint PRIMARY KEY CHECK (tree_size > 0),
    root bytea NOT NULL CHECK (octet_length(root) = 32),
    note text NOT NULL,
    created_at timestamptz NOT NULL UNIQUE
);
SELECT statesvc.make_append_only('statesvc.checkpoint');

-- RFC 3161 time stamps: an outside authority says that it saw the very note of this checkpoint at this time. `token` is its whole
-- answer (DER), as `openssl ts -verify -in` takes it. At most one per interval: a stamped head vouches for every entry below it.
CREATE TABLE statesvc.checkpoint_stamp (
    tree_size bigint NOT NULL CHECK (tree_size > 0),
    stamped_at timestamptz NOT NULL,
    authority text NOT NULL,
    token bytea NOT NULL CHECK (octet_length(token) BETWEEN 1 AND 65536),
    received_at timestamptz NOT NULL,
    PRIMARY KEY (tree_size, stamped_at)
);
SELECT statesvc.make_append_only('statesvc.checkpoint_stamp');

-- The Ed25519 keys of checkpoints, the secret half under the master key. All that are not retired sign; a retired one has no secret
-- left. A new key is announced by an action in the log before it signs alone, so a verifier that trusts the old key can trust it.
CREATE TABLE statesvc.signing_key (
    key_id bytea PRIMARY KEY CHECK (octet_length(key_id) = 4),
    origin text NOT NULL,
    public_key bytea NOT NULL CHECK (octet_length(public_key) = 32),
    sealed_seed bytea,
    created_at timestamptz NOT NULL,
    retired_at timestamptz,
    CHECK ((sealed_seed IS NULL) = (retired_at IS NOT NULL))
);

-- Why nothing is sealed: this is not the log that was published (a restored backup, a changed row). While the row stands, no notification
-- is sent, because the same ids may have stood for something else, and no role is ready.
CREATE TABLE statesvc.sealing_refusal (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    why text NOT NULL,
    since timestamptz NOT NULL
);
