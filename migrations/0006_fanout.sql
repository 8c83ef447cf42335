-- Who wants to know, what there is to tell, and what waits to be told.
--
-- `notification` is written once in the transaction that appends, unique per (subscription, shipment, sequence) for ever;
-- `outbox` is the narrow row that waits and goes away when the subscriber has it.

CREATE TABLE statesvc.subscription (
    subscription_id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    url text NOT NULL,
    carriers text[],
    statuses text[],
    types text[],
    payload text NOT NULL DEFAULT 'thin' CHECK (payload IN ('thin', 'full')),
    sealed_secrets bytea[] NOT NULL,
    paused_at timestamptz,
    disabled_at timestamptz,
    disabled_why text,
    deleted_at timestamptz
);

CREATE TABLE statesvc.notification (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    subscription_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL CHECK (type IN ('shipment.status_changed', 'shipment.updated')),
    carrier_id text NOT NULL,
    tracking_number text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    PRIMARY KEY (shipment_id, sequence, subscription_id)
);
CREATE INDEX notification_subscription ON statesvc.notification (subscription_id, created_at);

CREATE TABLE statesvc.outbox (
    subscription_id uuid NOT NULL,
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    available_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    token uuid,
    attempts smallint NOT NULL DEFAULT 0,
    worker text,
    PRIMARY KEY (subscription_id, shipment_id, sequence)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX outbox_lane ON statesvc.outbox (subscription_id, available_at, shipment_id, sequence);
CREATE INDEX outbox_token ON statesvc.outbox (token) WHERE token IS NOT NULL;
