-- Rebuilding the shipment projection beside live traffic: a spare table is filled from the log and takes the live one's place.
--
-- While a rebuild runs, triggers on the live table note which shipments changed; the rebuild folds these again, the last of them
-- under the lock of the swap. After the swap the notes go on, so that a rollback can bring the old table up to date before it
-- takes its place again. Whoever changes one of the two tables changes the other alike: tests compare them.

CREATE TABLE statesvc.shipment_spare (LIKE statesvc.shipment INCLUDING ALL) WITH (fillfactor = 70);

-- Notes, not facts: a shipment may stand here often. Without a key, so that no writer waits for another.
CREATE TABLE statesvc.shipment_touched (shipment_id uuid NOT NULL);

CREATE TABLE statesvc.rebuild (
    projection text PRIMARY KEY CHECK (projection = 'shipment'),
    swapped_at timestamptz NOT NULL,
    swapped_by text NOT NULL,
    events bigint NOT NULL
);

-- As its owner: the service may not write notes of its own.
CREATE FUNCTION statesvc.note_touched() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO statesvc.shipment_touched (shipment_id) SELECT c.shipment_id FROM changed c;
    RETURN NULL;
END
$$;
