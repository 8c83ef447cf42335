-- The event log. Its shape is final: rows here can never be mended.
--
-- Five kinds of entries, each the leaf of one Merkle tree: event, conflict, transition, attempt, action. Of each, `canonical`
-- holds the RFC 8785 bytes of all bound fields and `leaf_hash` = SHA-256(0x00 || canonical); the other columns repeat
-- bound fields for indexes and filters (the verifier compares them). Every transaction that writes entries writes one row in
-- `batch` with the leaf hashes in their order: events, conflicts, transitions, attempts, actions; an entry stands at
-- `ordinal` in it (from 0). The sealer gives batches their place in the tree later, so appends never wait for each other.

CREATE SEQUENCE statesvc.batch_id_seq;

CREATE TABLE statesvc.batch (
    batch_id bigint NOT NULL DEFAULT nextval('statesvc.batch_id_seq'),
    recorded_at timestamptz NOT NULL,
    entries int NOT NULL CHECK (entries > 0),
    leaf_hashes bytea NOT NULL CHECK (octet_length(leaf_hashes) = 32 * entries),
    writer text NOT NULL,
    PRIMARY KEY (batch_id, recorded_at)
) PARTITION BY RANGE (recorded_at);

-- Head of a shipment's chain of events, and the lock that appends to it take. `sealed_key` is the shipment's own key under
-- the master key: erasing it makes its personal parts and bodies unreadable.
CREATE TABLE statesvc.stream (
    shipment_id uuid PRIMARY KEY,
    carrier_id text NOT NULL,
    number text NOT NULL,
    discriminator text NOT NULL,
    version int NOT NULL CHECK (version >= 0),
    head_hash bytea NOT NULL CHECK (octet_length(head_hash) = 32),
    recorded_at timestamptz NOT NULL,
    first_recorded_at timestamptz NOT NULL,
    sealed_key bytea,
    erased_at timestamptz,
    CHECK ((sealed_key IS NULL) = (erased_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX stream_number ON statesvc.stream (carrier_id, number);

-- Never expires: the promise `carrier_id` + `event_id` takes effect once outlives the partitions. An id that an enrichment
-- would have (`e1-`) is kept here too when its scan already carried the value.
CREATE TABLE statesvc.event_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    shipment_id uuid NOT NULL,
    facts_digest bytea NOT NULL CHECK (octet_length(facts_digest) = 16),
    PRIMARY KEY (carrier_id, event_id)
);
SELECT statesvc.make_append_only('statesvc.event_key');

CREATE TABLE statesvc.event (
    shipment_id uuid NOT NULL,
    version int NOT NULL CHECK (version > 0),
    recorded_at timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('scan', 'info', 'correction', 'unmapped')),
    status text CHECK (status <> 'unknown'),
    carrier_code text,
    by_category boolean NOT NULL,
    normalizer text NOT NULL,
    leaf_hash bytea NOT NULL,
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, version, recorded_at),
    CHECK (leaf_hash = sha256('\x00'::bytea || canonical))
) PARTITION BY RANGE (recorded_at);
-- Codes that a human should look at: unknown ones, and those read only by the category that the carrier gives beside them.
-- Pattern ops, because a code may have a reason appended and is then counted by its prefix.
CREATE INDEX event_unmapped ON statesvc.event (carrier_id, carrier_code text_pattern_ops) WHERE kind = 'unmapped' OR by_category;

-- The same carrier_id + event_id with other carrier-stated facts. `shipment_id` is the holder of the event.
CREATE TABLE statesvc.conflict (
    shipment_id uuid NOT NULL,
    claimed_shipment_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL CHECK (octet_length(facts_digest) = 16),
    leaf_hash bytea NOT NULL,
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, batch_id, ordinal, recorded_at),
    CHECK (leaf_hash = sha256('\x00'::bytea || canonical))
) PARTITION BY RANGE (recorded_at);
CREATE INDEX conflict_claimed ON statesvc.conflict (claimed_shipment_id);

-- Stores a conflict once however often it is pushed; repeats are counted here, outside the log.
CREATE TABLE statesvc.conflict_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL,
    seen bigint NOT NULL DEFAULT 1,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (carrier_id, event_id, facts_digest)
);

-- One change of a shipment's status. `sequence` is the version of the event that it names.
CREATE TABLE statesvc.transition (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL CHECK (sequence > 0),
    recorded_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    from_status text NOT NULL,
    to_status text NOT NULL CHECK (to_status <> from_status),
    event_id text NOT NULL,
    worker text NOT NULL,
    leaf_hash bytea NOT NULL,
    canonical bytea NOT NULL,
    PRIMARY KEY (shipment_id, sequence, recorded_at),
    CHECK (leaf_hash = sha256('\x00'::bytea || canonical))
) PARTITION BY RANGE (recorded_at);

-- The outcome of one try at one notification: what we told, when, and what came back.
CREATE TABLE statesvc.attempt (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    subscription_id uuid NOT NULL,
    number int NOT NULL CHECK (number > 0),
    recorded_at timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    webhook_id text NOT NULL,
    outcome text NOT NULL,
    status_code int,
    duration_ms int NOT NULL CHECK (duration_ms >= 0),
    leaf_hash bytea NOT NULL,
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, sequence, subscription_id, number, recorded_at),
    CHECK (leaf_hash = sha256('\x00'::bytea || canonical))
) PARTITION BY RANGE (recorded_at);
CREATE INDEX attempt_subscription ON statesvc.attempt (subscription_id, recorded_at);

-- What an operator did: hold, replay, discard, erase, key and subscription changes.
CREATE TABLE statesvc.action (
    recorded_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    actor text NOT NULL,
    verb text NOT NULL,
    target text NOT NULL,
    leaf_hash bytea NOT NULL,
    canonical bytea NOT NULL,
    PRIMARY KEY (batch_id, ordinal, recorded_at),
    CHECK (leaf_hash = sha256('\x00'::bytea || canonical))
) PARTITION BY RANGE (recorded_at);

INSERT INTO statesvc.partitioned (table_name, step, steps_ahead, append_only) VALUES
    ('batch', 'month', 3, true),
    ('event', 'month', 3, true),
    ('conflict', 'month', 3, true),
    ('transition', 'month', 3, true),
    ('attempt', 'month', 3, true),
    ('action', 'month', 3, true);
SELECT statesvc.make_append_only(format('statesvc.%I', table_name)::regclass) FROM statesvc.partitioned;

-- The digest key and the inbox key under the master key. The digest key is made once and never changes: every keyed digest
-- in the log depends on it.
CREATE TABLE statesvc.service_key (
    name text PRIMARY KEY CHECK (name IN ('digest', 'inbox')),
    sealed_key bytea NOT NULL,
    created_at timestamptz NOT NULL
);
