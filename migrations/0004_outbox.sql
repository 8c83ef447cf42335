-- Who subscribed to what, which notifications there are, and which of them still wait to be sent.
--
-- `notification` is written once, in the transaction that appends, unique per (subscription, shipment, sequence); it leaves with its month of the log. `outbox` is
-- the narrow row that waits, and goes away when the subscriber has it.

-- `owner`: that of the key that made it; other owners' keys do not see it. `shipments`: only of these, each `carrier_id/NUMBER`. `pii`: a full payload holds personal fields, which the maker of
-- the subscription had to be allowed to read. `parcels`: of a parcel that several sources push, all that they say, or each status once. `signature`: the kind of the current secret. `second_signature`: for a receiver that checks an older one; how, not with what. `give_up_after`: seconds by type, after which a
-- notification is not tried again. `missed_since`: from then on nothing was collected, or every attempt failed; a replay from there
-- sends what was missed. `url` is shown, so it never holds a login: that of a message broker is in `sealed_login`, and headers of the receiver's own
-- are in `sealed_headers`, sealed under the master key and bound to the subscription (NULL: it has none); of those only `header_names` are shown.
CREATE TABLE statesvc.subscription (
    subscription_id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    owner text NOT NULL,
    name text,
    description text,
    url text NOT NULL,
    sealed_login bytea,
    sealed_headers bytea,
    header_names text[] NOT NULL DEFAULT '{}',
    sealed_secrets bytea[] NOT NULL,
    signature text NOT NULL DEFAULT 'hmac' CHECK (signature IN ('hmac', 'ed25519')),
    second_signature jsonb,
    carriers text[],
    statuses text[],
    types text[],
    shipments text[],
    parcels text NOT NULL DEFAULT 'all' CHECK (parcels IN ('all', 'once')),
    payload text NOT NULL DEFAULT 'thin' CHECK (payload IN ('thin', 'full')),
    pii boolean NOT NULL DEFAULT false,
    rate_per_second double precision CHECK (rate_per_second > 0),
    coalesces boolean NOT NULL DEFAULT true,
    give_up_after jsonb NOT NULL DEFAULT '{}',
    paused_at timestamptz,
    disabled_at timestamptz,
    disabled_why text,
    missed_since timestamptz,
    deleted_at timestamptz
);
CREATE INDEX subscription_owner ON statesvc.subscription (owner) WHERE deleted_at IS NULL;

-- One row per subscription of which every attempt since `since` failed; the first success deletes it. A table of its own, because
-- claims read `subscription` all the time.
CREATE TABLE statesvc.subscription_failing (
    subscription_id uuid PRIMARY KEY,
    since timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    failures int NOT NULL CHECK (failures > 0),
    last_outcome text NOT NULL,
    last_status_code int,
    warned_at timestamptz
) WITH (fillfactor = 50);

-- `occurred_offset_seconds`: of the offset from UTC in which the carrier stated `occurred_at`, so that a body says the local time.
-- `observed`: what an observation's body says of it; its `sequence` is negative, counted up from -1,000,000 for each shipment, so that it
-- never takes the place of a change.
-- `epoch`: that of the log, where it is not the first: after a restore sequences begin anew. A fork of the log changes it for what came since.
CREATE TABLE statesvc.notification (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    subscription_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL CHECK (type IN (
        'shipment.status_changed', 'shipment.updated', 'shipment.stalled', 'shipment.not_picked_up', 'shipment.overdue',
        'shipment.delivery_missed', 'shipment.pickup_expiring', 'shipment.never_heard')),
    carrier_id text NOT NULL,
    tracking_number text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    occurred_offset_seconds int NOT NULL DEFAULT 0,
    epoch int CHECK (epoch > 1),
    observed jsonb,
    CHECK ((observed IS NOT NULL) = (sequence < 0)),
    PRIMARY KEY (shipment_id, sequence, subscription_id)
);
CREATE INDEX notification_subscription ON statesvc.notification (subscription_id, created_at);
-- By `webhook_id`, for who looks one up. Ids are random: in a B-tree each new one would dirty a page of its own. Bloom filters over ranges of
-- pages are made by vacuum, behind the rows, and cost the append nothing; a look-up reads them all, and the newest rows.
CREATE INDEX notification_webhook_id ON statesvc.notification
    USING brin (webhook_id text_bloom_ops (n_distinct_per_range = 2500, false_positive_rate = 0.005)) WITH (pages_per_range = 64);

-- A notification that stands for earlier ones too, which were left out because too much waited for the subscription. `skipped`, from which
-- to which: what its body says. `covers`: the sequences of those that had not ended; they end with it.
CREATE TABLE statesvc.notification_gap (
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    subscription_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    skipped int NOT NULL CHECK (skipped > 0),
    from_sequence int NOT NULL,
    to_sequence int NOT NULL,
    covers int[] NOT NULL CHECK (cardinality(covers) > 0),
    PRIMARY KEY (shipment_id, sequence, subscription_id),
    CHECK (from_sequence <= to_sequence AND to_sequence < sequence)
);

-- `received_at`: when the message that caused it was acknowledged (NULL: no message did, or it is a replay); `traceparent`: the trace that it
-- belongs to, where that is sampled (W3C Trace Context).
-- `earlier_attempts`: a replayed notification numbers its attempts on, because the log knows an attempt by its number; only its
-- schedule begins anew, with `attempts`.
CREATE TABLE statesvc.outbox (
    subscription_id uuid NOT NULL,
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    available_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    received_at timestamptz,
    token uuid,
    attempts smallint NOT NULL DEFAULT 0,
    earlier_attempts smallint NOT NULL DEFAULT 0,
    worker text,
    traceparent text,
    PRIMARY KEY (subscription_id, shipment_id, sequence)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
-- First attempts and retries have an index each, so that a claim finds either without reading past the other.
CREATE INDEX outbox_first ON statesvc.outbox (subscription_id, available_at, shipment_id, sequence) WHERE attempts = 0;
CREATE INDEX outbox_retry ON statesvc.outbox (subscription_id, available_at, shipment_id, sequence) WHERE attempts > 0;
CREATE INDEX outbox_token ON statesvc.outbox (token) WHERE token IS NOT NULL;

-- The tries at notifications that have not ended. When one ends, they go into its entry of the log (`attempt`) in the same transaction;
-- until then nothing binds them.
CREATE TABLE statesvc.open_attempt (
    subscription_id uuid NOT NULL,
    shipment_id uuid NOT NULL,
    sequence int NOT NULL,
    number int NOT NULL CHECK (number > 0),
    started_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    duration_ms int NOT NULL CHECK (duration_ms >= 0),
    outcome text NOT NULL,
    status_code int,
    body_commitment bytea NOT NULL CHECK (octet_length(body_commitment) = 32),
    worker text NOT NULL,
    sealed_part bytea,
    PRIMARY KEY (subscription_id, shipment_id, sequence, number)
);
CREATE INDEX open_attempt_recorded ON statesvc.open_attempt (subscription_id, recorded_at);

-- The newest tests of each subscription (POST /v1/subscriptions/{id}/test), which were about no change: the log does not bind them. What
-- their examples say is NULL where they say nothing of a shipment.
CREATE TABLE statesvc.test_attempt (
    subscription_id uuid NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL,
    carrier_id text,
    tracking_number text,
    sequence int,
    started_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    duration_ms int NOT NULL CHECK (duration_ms >= 0),
    outcome text NOT NULL,
    status_code int,
    PRIMARY KEY (subscription_id, webhook_id)
);

-- What rules every notifier alike. The contracted rate is a bucket: what it brings is spent until `spent_until`, and of the time since
-- then at most a second's worth is left, but at least one notification. `not_before`: the receiver asked not to be called earlier.
CREATE TABLE statesvc.throttle (
    subscription_id uuid PRIMARY KEY,
    spent_until timestamptz NOT NULL DEFAULT '-infinity',
    not_before timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- What each notifier learned about a receiver. For people to look at; nothing is decided by it.
CREATE TABLE statesvc.limiter_state (
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

-- What the operator should know of: what the service did or saw by itself. `send_at` is when its webhook is due (NULL: it was sent, or
-- given up).
CREATE TABLE statesvc.notice (
    notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    target text NOT NULL,
    created_at timestamptz NOT NULL,
    details jsonb NOT NULL,
    seen_at timestamptz,
    seen_by text,
    sends smallint NOT NULL DEFAULT 0,
    send_at timestamptz,
    notified_at timestamptz
);
CREATE INDEX notice_unseen ON statesvc.notice (notice_id) WHERE seen_at IS NULL;
CREATE INDEX notice_due ON statesvc.notice (send_at) WHERE send_at IS NOT NULL;
