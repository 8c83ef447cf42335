-- Where bodies and months of the log are after their hot time: in archive files, with the ledgers that say so.
-- functions/archive.sql is what drops the partitions.

-- A day's bodies are written to an archive file, the file is verified, what still waits is copied to `body_retained`, and only then is the
-- partition dropped; the file is deleted when its months are over. The ledger of that, one row per day.
CREATE TABLE statesvc.body_archive (
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
    -- an operator said that the file is lost for good: archiving goes on without it
    lost_at timestamptz,
    failures int NOT NULL DEFAULT 0,
    failed_at timestamptz,
    failure text,
    CHECK ((written_at IS NULL) = (file_name IS NULL)),
    CHECK (num_nulls(written_at, sha256, size_bytes, bodies, compressed, unopened, erased) IN (0, 7)),
    CHECK (bodies = compressed + unopened + erased),
    CHECK (verified_at IS NULL OR written_at IS NOT NULL),
    CHECK (dropped_at IS NULL OR verified_at IS NOT NULL),
    CHECK (expired_at IS NULL OR dropped_at IS NOT NULL),
    CHECK (deleted_at IS NULL OR expired_at IS NOT NULL),
    CHECK (lost_at IS NULL OR dropped_at IS NOT NULL)
);

-- Bodies that outlive their day: of messages that still wait, of open dead letters, under legal hold. A reader looks here when
-- `body` no longer has it.
CREATE TABLE statesvc.body_retained (
    message_id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL CHECK (octet_length(commitment) = 32),
    headers jsonb NOT NULL,
    sealed bytea STORAGE EXTERNAL NOT NULL
);

-- Whose bodies must outlive every retention: all shipments that bear the number, later ones too.
CREATE TABLE statesvc.legal_hold (
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
CREATE UNIQUE INDEX legal_hold_open ON statesvc.legal_hold (carrier_id, number) WHERE released_at IS NULL;

-- A month's entries are written to a Parquet file, the file is compared with the partitions, and these are then replaced by small ones
-- that hold only what must stay at hand. `batch` stays whole: it holds the leaves of the tree, so every proof is made as before. The
-- ledger of that, one row per month, one time per step.
--
-- No reader may see a log that is silently shorter. From `leaving_at` on a month counts as gone: a reader of a shipment looks for
-- its row in `log_resident` first, and without one brings its entries back. The partitions go a minute later, when every reader that
-- looked before has finished.
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
    fanouts bigint,
    attempts bigint,
    observations bigint,
    actions bigint,
    written_at timestamptz,
    verified_at timestamptz,
    leaving_at timestamptz,
    dropped_at timestamptz,
    -- the dedupe keys of shipments that ended with it are packed
    packed_at timestamptz,
    lost_at timestamptz,
    failures int NOT NULL DEFAULT 0,
    failed_at timestamptz,
    failure text,
    CHECK (num_nulls(written_at, file_name, sha256, index_sha256, size_bytes, tree_size, first_index, last_index, first_batch, last_batch,
        events, conflicts, transitions, fanouts, attempts, observations, actions) IN (0, 17)),
    CHECK (tree_size > last_index AND last_index >= first_index),
    CHECK (verified_at IS NULL OR written_at IS NOT NULL),
    CHECK (leaving_at IS NULL OR verified_at IS NOT NULL),
    CHECK (dropped_at IS NULL OR leaving_at IS NOT NULL),
    CHECK (packed_at IS NULL OR dropped_at IS NOT NULL),
    CHECK (lost_at IS NULL OR dropped_at IS NOT NULL)
);

-- Whose entries of an archived month are in the database too: retained when the month was archived, or brought back since.
CREATE TABLE statesvc.log_resident (
    shipment_id uuid NOT NULL,
    month date NOT NULL REFERENCES statesvc.log_archive,
    retained_at timestamptz NOT NULL,
    why text NOT NULL CHECK (why IN ('held', 'active', 'unread', 'asked')),
    PRIMARY KEY (shipment_id, month)
);

-- Why nothing is archived, dropped or deleted: the folder or bucket is not the archive that the ledgers name (a volume that is not mounted),
-- or cannot be written. `noted_at`: by the last pass.
CREATE TABLE statesvc.archive_refusal (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    why text NOT NULL,
    since timestamptz NOT NULL,
    noted_at timestamptz NOT NULL
);
