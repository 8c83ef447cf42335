-- What the log means now: one row per shipment. It can be rebuilt from the log at any time; nothing here is evidence.

-- `state` is the fold's whole accumulator, so that an event which sorts last is applied without reading the log. `promised_until`: the end
-- of the day that the carrier promised first; `lane`: country of the first and the last scan; `service`: what the shipper bought, as the
-- carrier named it last. `due_at`: when something that is expected of the shipment is overdue (NULL: nothing is), so that the watcher looks
-- at it then and never at the others.
CREATE TABLE statesvc.shipment (
    shipment_id uuid PRIMARY KEY,
    version int NOT NULL,
    recorded_at timestamptz NOT NULL,
    first_recorded_at timestamptz NOT NULL,
    last_event_at timestamptz NOT NULL,
    status_since timestamptz,
    delivered_at timestamptz,
    attempts int NOT NULL,
    terminal boolean NOT NULL,
    carrier_id text NOT NULL,
    number text NOT NULL,
    tracking_number text NOT NULL,
    discriminator text NOT NULL,
    status text NOT NULL,
    reason text,
    flags text[] NOT NULL,
    estimated_delivery text,
    signed_by_event_id text,
    promised_until timestamptz,
    lane text,
    service text,
    due_at timestamptz,
    state bytea NOT NULL
) WITH (fillfactor = 70);
-- by number alone, too: carriers share some; and by how it begins, which takes an order byte by byte
CREATE INDEX shipment_number ON statesvc.shipment (number text_pattern_ops, carrier_id);
-- most shipments have ended; who looks for those that have not never reads past them
CREATE INDEX shipment_updated ON statesvc.shipment (terminal, recorded_at, shipment_id);
CREATE INDEX shipment_due ON statesvc.shipment (due_at) WHERE due_at IS NOT NULL;

-- What is expected of a carrier's shipments ('*': of all), or of those of one of its services ('': of all), and after how many hours it is
-- observed that it did not happen; what a row leaves out, the next wider one says, at last our own defaults. `service` is spelled as it is
-- compared. `rearm_recorded_at`, `rearm_shipment_id`: up to where the unfinished
-- shipments were given their due times by these rules (NULL: all of them were).
CREATE TABLE statesvc.expectation_rules (
    carrier_id text,
    service text NOT NULL DEFAULT '' CHECK (length(service) <= 80),
    revision bigint NOT NULL CHECK (revision > 0),
    rules jsonb NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL,
    rearm_recorded_at timestamptz,
    rearm_shipment_id uuid,
    PRIMARY KEY (carrier_id, service),
    CHECK (carrier_id <> '*' OR service = ''),
    CHECK ((rearm_recorded_at IS NULL) = (rearm_shipment_id IS NULL))
);

-- What a shipper attached to a number, maybe before its first scan: an order id and metadata, sealed (NULL: nothing, or no longer).
-- `digests`: a keyed digest of each value, by which it is found. It lives as long as the log's shipments do, unless it is taken away or the
-- number is erased: `erased_at` refuses whatever comes later, so that an erasure and a shipper who write at the same time leave nothing.
CREATE TABLE statesvc.shipment_references (
    carrier_id text NOT NULL,
    number text NOT NULL,
    sealed bytea,
    digests bytea[] NOT NULL,
    changed_at timestamptz NOT NULL,
    erased_at timestamptz,
    -- found by number alone, too
    PRIMARY KEY (number, carrier_id),
    CHECK (sealed IS NOT NULL OR digests = '{}'),
    CHECK (sealed IS NULL OR erased_at IS NULL)
);
CREATE INDEX shipment_references_digest ON statesvc.shipment_references USING gin (digests);
-- digests are as good as unique: statistics of them say nothing, and the planner reads them for every search
ALTER TABLE statesvc.shipment_references ALTER digests SET STATISTICS 0;

-- Numbers of which something must be heard within `hours`. Nothing looks at them when a message comes: at `due_at` the watcher asks whether
-- anything was heard meanwhile. `observed_at`: nothing was, and that was observed; the row stays a while to say so.
CREATE TABLE statesvc.awaited_number (
    number text NOT NULL,
    carrier_id text NOT NULL,
    hours int NOT NULL CHECK (hours > 0),
    awaited_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    observed_at timestamptz,
    PRIMARY KEY (number, carrier_id)
);
CREATE INDEX awaited_number_due ON statesvc.awaited_number (due_at);

-- Rebuilding goes on during live traffic: the spare table is filled from the log and takes the live one's place. Meanwhile triggers on
-- the live table note which shipments changed; the rebuild folds these again, the last of them under the lock of the swap. After the
-- swap the notes go on, so that a rollback can bring the old table up to date before it takes its place again. A change to one of
-- the two tables must be made to the other: tests compare them.
CREATE TABLE statesvc.shipment_spare (LIKE statesvc.shipment INCLUDING ALL) WITH (fillfactor = 70);

-- Notes, not facts: a shipment may be here many times. Without a key, so that no writer waits for another.
CREATE TABLE statesvc.shipment_touched (shipment_id uuid NOT NULL);
ALTER TABLE statesvc.shipment_touched REPLICA IDENTITY FULL;

CREATE TABLE statesvc.rebuild (
    projection text PRIMARY KEY CHECK (projection = 'shipment'),
    swapped_at timestamptz NOT NULL,
    swapped_by text NOT NULL,
    events bigint NOT NULL
);

-- The triggers' function. It runs as its owner: the service may not write notes of its own.
CREATE FUNCTION statesvc.note_touched() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO statesvc.shipment_touched (shipment_id) SELECT c.shipment_id FROM changed c;
    RETURN NULL;
END
$$;
