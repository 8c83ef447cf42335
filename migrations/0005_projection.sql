-- What the log means now: one row per shipment. It can be rebuilt from the log at any time; nothing here is evidence.

-- `state` is the fold's whole accumulator, so that an event which sorts last is applied without reading the log.
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
    state bytea NOT NULL
) WITH (fillfactor = 70);
-- by number alone, too: carriers share some
CREATE INDEX shipment_number ON statesvc.shipment (number, carrier_id);
-- most shipments have ended; who looks for those that have not never reads past them
CREATE INDEX shipment_updated ON statesvc.shipment (terminal, recorded_at, shipment_id);

-- Rebuilding goes on during live traffic: the spare table is filled from the log and takes the live one's place. Meanwhile triggers on
-- the live table note which shipments changed; the rebuild folds these again, the last of them under the lock of the swap. After the
-- swap the notes go on, so that a rollback can bring the old table up to date before it takes its place again. A change to one of
-- the two tables must be made to the other: tests compare them.
CREATE TABLE statesvc.shipment_spare (LIKE statesvc.shipment INCLUDING ALL) WITH (fillfactor = 70);

-- Notes, not facts: a shipment may be here many times. Without a key, so that no writer waits for another.
CREATE TABLE statesvc.shipment_touched (shipment_id uuid NOT NULL);

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
