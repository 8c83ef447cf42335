-- The event log. Its rows are never changed, so neither is its shape.
--
-- Seven kinds of entries, each a leaf of one Merkle tree: event, conflict, transition, fanout, attempt, observation, action. In each
-- table, `canonical` holds the RFC 8785 bytes of all bound fields, compressed (statesvc/log/json_compression.py) but for actions; the other
-- columns repeat bound fields for indexes and filters, and the verifier compares them. A leaf hash is SHA-256(0x00 || the RFC 8785 bytes). Every
-- transaction that writes entries writes one row in `batch` with the
-- leaf hashes in order: events, conflicts, transitions, fanouts, attempts, observations, actions. An entry stands at `ordinal` in it, counted from 0, and was
-- recorded between `recorded_from` and `recorded_to`, both included: a reader need not search other partitions. The sealer gives batches
-- their place in the tree later (0006_sealing), so appends never wait for each other.
--
-- The indexes on batch_id lead from a place in the tree to its entries: the feed, the stream and the verifier read the log by batches. Without
-- `ordinal`, so that the entries of a batch share one key.

-- CACHE 1, because a batch of a shipment's later version must have the higher id, whichever session writes it.
CREATE SEQUENCE statesvc.batch_id_seq CACHE 1;

-- The id of the batch that this transaction writes. Taken under the locks of the heads that it moves, so a shipment's batches ascend
-- with its versions. The transaction gets its own id first: the sealer knows by those which batch ids can still turn up.
CREATE FUNCTION statesvc.next_batch_id() RETURNS bigint
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_current_xact_id();
    RETURN nextval('statesvc.batch_id_seq');
END
$$;

-- The epochs of the log, and the index of the first entry of each. The first is 1; `statesvc log fork` starts another, after a restore that
-- lost entries which were published. A transaction that writes entries reads its epoch here, and thereby holds the table until it ends;
-- a fork takes the table for itself. So nobody writes an old epoch after the fork's entry, and nothing need be locked for that.
CREATE TABLE statesvc.log_epoch (
    epoch int PRIMARY KEY CHECK (epoch > 0),
    begins bigint NOT NULL UNIQUE CHECK (begins >= 0),
    started_at timestamptz NOT NULL
);
INSERT INTO statesvc.log_epoch (epoch, begins, started_at) VALUES (1, 0, statesvc.clock());

CREATE TABLE statesvc.batch (
    batch_id bigint NOT NULL DEFAULT statesvc.next_batch_id(),
    recorded_from timestamptz NOT NULL,
    recorded_to timestamptz NOT NULL CHECK (recorded_to >= recorded_from),
    entries int NOT NULL CHECK (entries > 0),
    leaf_hashes bytea NOT NULL CHECK (octet_length(leaf_hashes) = 32 * entries),
    writer text NOT NULL,
    PRIMARY KEY (batch_id, recorded_from)
) PARTITION BY RANGE (recorded_from);

-- The head of a shipment's chain of events, and the lock that appends to it take. `sealed_key` is the shipment's own key under the
-- master key: erasing it makes the shipment's personal parts and bodies unreadable. They stay as ciphertext that nothing opens, so
-- every hash and proof still verifies.
-- A stream that only holds a key has version 0 and is no shipment: a message named its number and said nothing about it, or contradicted
-- another shipment with it, last at `named_at`; it goes when the last such message has expired (functions/named_streams.sql). An erased
-- one stays, whether or not anything was ever said about its number.
-- `packed_keys`, `packed_values`: what is left of the rows of `event_key` once all entries of the shipment are archived: eight bytes an
-- event, and eight a value that it carried (functions/packed_keys.sql).
-- `entries_until`: when something else about the shipment was recorded (an attempt, an observation, a reading) in a later month than its
-- last event; NULL: nothing was. It moves at most once a month, so most entries leave the row alone. Readers plan with the months up to
-- the later of it and `recorded_at`.
-- `parcel_id`: the shipment id that stands for the parcel, where several shipments are one parcel, or may be: that of the carrier and number
-- that an aggregator names, or that a shipper stated; NULL: nobody else speaks of it.
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
    named_at timestamptz,
    entries_until timestamptz,
    packed_keys bytea CHECK (octet_length(packed_keys) % 8 = 0),
    packed_values bytea CHECK (octet_length(packed_values) % 8 = 0),
    parcel_id uuid,
    CHECK ((sealed_key IS NULL) = (erased_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX stream_number ON statesvc.stream (carrier_id, number);
-- by the last characters, backwards; here, where a row's indexes are written once, and not in the projection, where at each change. Fifteen
-- take as much room as nine do, and sixteen a quarter more: of all that is written for a search, most are pages that this index touches first
-- after a checkpoint
CREATE INDEX stream_number_end ON statesvc.stream (reverse(right(number, 15)) text_pattern_ops);
-- without `version` in its predicate: else no append to a shipment would be a heap-only update
CREATE INDEX stream_named ON statesvc.stream (named_at) WHERE named_at IS NOT NULL;

CREATE INDEX stream_parcel ON statesvc.stream (parcel_id) WHERE parcel_id IS NOT NULL;

-- That a `carrier_id` + `event_id` takes effect once is a promise that outlives the partitions: no row goes before its digest stands in its
-- shipment's `packed_keys`, and a row with facts to contradict, or with an alias, never goes. `facts_digest` is empty
-- for a derived id, which is its facts; for a carrier's own id it is a format byte and keyed digests: of the core and of the time (eight
-- bytes each), of city, region, country and facility (four each); zeros where one is not stated. `attribute_digests` are those of the values
-- that the scan carried from the start (signer, expected delivery), eight bytes each. An alias stands for the event of another id.
CREATE TABLE statesvc.event_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    shipment_id uuid NOT NULL,
    facts_digest bytea NOT NULL CHECK (octet_length(facts_digest) IN (0, 33)),
    attribute_digests bytea NOT NULL CHECK (octet_length(attribute_digests) % 8 = 0),
    alias_of text,
    PRIMARY KEY (carrier_id, event_id)
);

-- Refuses to delete a key that its shipment's set does not hold.
CREATE FUNCTION statesvc.refuse_unpacked() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.facts_digest <> '' OR OLD.alias_of IS NOT NULL OR NOT EXISTS (
        SELECT FROM statesvc.stream s WHERE s.shipment_id = OLD.shipment_id AND s.carrier_id = OLD.carrier_id
            AND statesvc.holds_key(s.packed_keys, OLD.event_id)
    ) THEN
        RAISE EXCEPTION 'DELETE on statesvc.event_key is refused: the set of its shipment does not hold the key' USING ERRCODE = 'SS001';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON statesvc.event_key
    FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
CREATE TRIGGER only_packing BEFORE DELETE ON statesvc.event_key
    FOR EACH STATEMENT WHEN (current_setting('statesvc.packing_keys', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION statesvc.refuse_change();
CREATE TRIGGER refuse_unpacked BEFORE DELETE ON statesvc.event_key FOR EACH ROW EXECUTE FUNCTION statesvc.refuse_unpacked();

-- `occurred_offset_seconds`: of the offset from UTC in which the carrier stated `occurred_at`. `raw_type` to `raw_text`: its codes as they stand
-- in the leaf. `printed_number`: the tracking number as printed, where that is not the number of the shipment's stream.
CREATE TABLE statesvc.event (
    shipment_id uuid NOT NULL,
    message_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    version int NOT NULL CHECK (version > 0),
    ordinal int NOT NULL CHECK (ordinal >= 0),
    occurred_offset_seconds int NOT NULL,
    by_category boolean NOT NULL,
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('scan', 'info', 'correction', 'unmapped')),
    status text CHECK (status <> 'unknown'),
    carrier_code text,
    raw_type text,
    raw_code text,
    raw_reason text,
    raw_text text,
    corrects text,
    printed_number text,
    normalizer text NOT NULL,
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, version, recorded_at)
) PARTITION BY RANGE (recorded_at);
-- Codes that a human should look at: unknown ones, and those that were read only by the category which the carrier adds to them.
-- Pattern ops, because a code may have a reason appended and is then counted by its prefix.
CREATE INDEX event_unmapped ON statesvc.event (carrier_id, carrier_code text_pattern_ops) WHERE kind = 'unmapped' OR by_category;
CREATE INDEX event_batch ON statesvc.event (batch_id);

-- The same carrier_id + event_id with other facts stated by the carrier. `shipment_id` is the shipment that has the event.
CREATE TABLE statesvc.conflict (
    shipment_id uuid NOT NULL,
    claimed_shipment_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL CHECK (octet_length(facts_digest) = 33),
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, batch_id, ordinal, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX conflict_claimed ON statesvc.conflict (claimed_shipment_id);
CREATE INDEX conflict_batch ON statesvc.conflict (batch_id);

-- Stores a conflict once, however often it is pushed. Repeats are counted here, outside the log. By the shipments and `recorded_at`, that of
-- the entry, readers know whether there is any, and in which months: one may precede all that is known of the claimed shipment.
CREATE TABLE statesvc.conflict_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL,
    shipment_id uuid NOT NULL,
    claimed_shipment_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    seen bigint NOT NULL DEFAULT 1,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (carrier_id, event_id, facts_digest)
);
CREATE INDEX conflict_key_shipment ON statesvc.conflict_key (shipment_id, recorded_at);
CREATE INDEX conflict_key_claimed ON statesvc.conflict_key (claimed_shipment_id, recorded_at);

-- One change of a shipment's status. `sequence` is the version of the event that caused it.
CREATE TABLE statesvc.transition (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL CHECK (sequence > 0),
    recorded_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    from_status text NOT NULL,
    to_status text NOT NULL CHECK (to_status <> from_status),
    canonical bytea NOT NULL,
    PRIMARY KEY (shipment_id, sequence, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX transition_batch ON statesvc.transition (batch_id);
-- A replay for a subscription finds the changes of status of a period.
CREATE INDEX transition_recorded ON statesvc.transition (recorded_at);

-- Whom one change is sent to: the subscriptions that matched it. `sequence` is the version of the event that names it. Written with the
-- change; and again, `replayed`, where they are notified again. What was not written then (a subscription was disabled) is written when it
-- is replayed.
CREATE TABLE statesvc.fanout (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL CHECK (sequence <> 0),
    recorded_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    subscriptions uuid[] NOT NULL CHECK (cardinality(subscriptions) > 0),
    replayed boolean NOT NULL,
    canonical bytea NOT NULL,
    PRIMARY KEY (shipment_id, sequence, batch_id, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX fanout_batch ON statesvc.fanout (batch_id);

-- How one notification ended, with all tries at it: what was sent, when, and what came back. `number` is that of the last try; 0: there
-- was none. `cancelled`: its subscription was deleted after tries. `late`: no end, but tries that were recorded after it.
-- Mostly the first try delivers it: `started_at`, `duration_ms` and `status_code` are of that one. Otherwise `tries` lists them all, with those
-- at earlier notifications that end with it, each with the sequence of its own.
CREATE TABLE statesvc.attempt (
    shipment_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    started_at timestamptz,
    batch_id bigint NOT NULL,
    sequence int NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    number int NOT NULL CHECK (number >= 0),
    duration_ms int,
    status_code smallint,
    outcome text NOT NULL CHECK (outcome IN ('delivered', 'given_up', 'cancelled', 'late')),
    tries jsonb,
    canonical bytea NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (shipment_id, sequence, subscription_id, batch_id, recorded_at),
    CHECK ((tries IS NULL) = (started_at IS NOT NULL AND duration_ms IS NOT NULL)),
    CHECK (tries IS NOT NULL OR number = 1 AND outcome = 'delivered')
) PARTITION BY RANGE (recorded_at);
CREATE INDEX attempt_subscription ON statesvc.attempt (subscription_id, recorded_at);
CREATE INDEX attempt_batch ON statesvc.attempt (batch_id);

-- What the service noticed by itself at a time, so that a later reading of the log says the same: `version` is that of the shipment's last
-- event then, `since` the time from which it was so. With version 0 (`never_heard`) `shipment_id` is the id of an awaited number, not of a
-- shipment: nothing was ever said of it, and nothing of it enters the history of a shipment that bears the number later.
CREATE TABLE statesvc.observation (
    shipment_id uuid NOT NULL,
    version int NOT NULL CHECK (version >= 0),
    kind text NOT NULL CHECK (kind IN ('stalled', 'not_picked_up', 'overdue', 'delivery_missed', 'pickup_expiring', 'never_heard')),
    recorded_at timestamptz NOT NULL,
    since timestamptz NOT NULL CHECK (since <= recorded_at),
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    canonical bytea NOT NULL,
    PRIMARY KEY (shipment_id, version, kind, recorded_at),
    CHECK ((version = 0) = (kind = 'never_heard'))
) PARTITION BY RANGE (recorded_at);
CREATE INDEX observation_batch ON statesvc.observation (batch_id);

-- What an operator did: hold, replay, discard, erase, changes of keys and subscriptions.
CREATE TABLE statesvc.action (
    recorded_at timestamptz NOT NULL,
    batch_id bigint NOT NULL,
    ordinal int NOT NULL CHECK (ordinal >= 0),
    actor text NOT NULL,
    verb text NOT NULL,
    target text NOT NULL,
    canonical bytea NOT NULL,
    PRIMARY KEY (batch_id, ordinal, recorded_at)
) PARTITION BY RANGE (recorded_at);
-- Evidence about a shipment names what operators did to it.
CREATE INDEX action_target ON statesvc.action (target);

INSERT INTO statesvc.partitioned (table_name, step, steps_ahead, append_only) VALUES
    ('batch', 'month', 3, true),
    ('event', 'month', 3, true),
    ('conflict', 'month', 3, true),
    ('transition', 'month', 3, true),
    ('fanout', 'month', 3, true),
    ('attempt', 'month', 3, true),
    ('observation', 'month', 3, true),
    ('action', 'month', 3, true);
SELECT statesvc.make_append_only(format('statesvc.%I', table_name)::regclass) FROM statesvc.partitioned;
SELECT statesvc.make_append_only('statesvc.log_epoch');
