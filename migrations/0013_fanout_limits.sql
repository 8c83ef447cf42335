-- migrate: no-transaction
-- How fast each subscription may be told, and what is left out when too much waits for it.
--
-- `throttle` is what rules every notifier alike: the contracted rate as a bucket (what it brings is spent until `spent_until`; of
-- the time since then at most a second's worth, and at least one, is left) and the time before which the receiver asked not to be
-- called. `limiter_state` shows what
-- each notifier learned of a receiver; nothing is decided by it. `notification_gap` says of a notification that it stands for
-- others before it too.
--
-- First attempts and retries of a subscription have an index each, so that a claim finds either without reading past the other.

ALTER TABLE statesvc.subscription
    ADD COLUMN IF NOT EXISTS rate_per_second double precision CHECK (rate_per_second > 0),
    ADD COLUMN IF NOT EXISTS coalesces boolean NOT NULL DEFAULT true;

CREATE TABLE IF NOT EXISTS statesvc.throttle (
    subscription_id uuid PRIMARY KEY,
    spent_until timestamptz NOT NULL DEFAULT '-infinity',
    not_before timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS statesvc.limiter_state (
    subscription_id uuid NOT NULL,
    worker text NOT NULL,
    updated_at timestamptz NOT NULL,
    concurrency int NOT NULL,
    in_flight int NOT NULL,
    mean_latency_seconds double precision,
    breaker text NOT NULL CHECK (breaker IN ('closed', 'open', 'half_open')),
    open_until timestamptz,
    PRIMARY KEY (subscription_id, worker)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS statesvc.notification_gap (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    subscription_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    skipped int NOT NULL CHECK (skipped > 0),
    from_sequence int NOT NULL,
    to_sequence int NOT NULL,
    PRIMARY KEY (shipment_id, sequence, subscription_id),
    CHECK (from_sequence <= to_sequence AND to_sequence < sequence)
);

CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_first
    ON statesvc.outbox (subscription_id, available_at, shipment_id, sequence) WHERE attempts = 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_retry
    ON statesvc.outbox (subscription_id, available_at, shipment_id, sequence) WHERE attempts > 0;
DROP INDEX CONCURRENTLY IF EXISTS statesvc.outbox_lane;
