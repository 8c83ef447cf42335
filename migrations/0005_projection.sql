-- What the log means now: one row a shipment. Rebuilt from the log at any time; nothing here is evidence.
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
CREATE INDEX shipment_number ON statesvc.shipment (carrier_id, number);
CREATE INDEX shipment_updated ON statesvc.shipment (recorded_at, shipment_id);
