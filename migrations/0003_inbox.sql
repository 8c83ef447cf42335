-- Messages: what carriers pushed, from the ACK to the verdict.
--
-- `body` is written once at ingress (day partitions); `inbox` holds the narrow row that waits, is leased and goes away;
-- `message` keeps the verdict and the key to the body under the shipments' keys; `receipt` recognises byte-identical retries.
-- `inbox.available_at` is the one time that counts: when new, when it arrived or its ETA; after a retry, the end of the
-- backoff; while leased, the end of the lease.

CREATE TABLE statesvc.receipt (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 16),
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    retries int NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
-- received_at only grows with the heap, so a block range index finds what has expired at no cost to ingest
CREATE INDEX receipt_received ON statesvc.receipt USING brin (received_at) WITH (autosummarize = on);

CREATE TABLE statesvc.body (
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL CHECK (octet_length(commitment) = 32),
    headers jsonb NOT NULL,
    sealed bytea NOT NULL,
    PRIMARY KEY (message_id, received_at)
) PARTITION BY RANGE (received_at);
-- ciphertext does not compress
ALTER TABLE statesvc.body ALTER COLUMN sealed SET STORAGE EXTERNAL;

CREATE TABLE statesvc.inbox (
    message_id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    available_at timestamptz NOT NULL,
    token uuid,
    attempts smallint NOT NULL DEFAULT 0,
    retries smallint NOT NULL DEFAULT 0,
    body_bytes int NOT NULL,
    carrier_id text NOT NULL,
    stage text NOT NULL DEFAULT 'raw' CHECK (stage IN ('raw', 'normalized')),
    sealed_key bytea NOT NULL,
    worker text,
    last_error text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX inbox_ready ON statesvc.inbox (carrier_id, available_at, message_id) WHERE token IS NULL;
CREATE INDEX inbox_leased ON statesvc.inbox (available_at) WHERE token IS NOT NULL;
CREATE INDEX inbox_token ON statesvc.inbox (token) WHERE token IS NOT NULL;

-- What a foreign worker read, until a Python worker appends it: canonical events, sealed like the body.
CREATE TABLE statesvc.normalized (
    message_id uuid PRIMARY KEY REFERENCES statesvc.inbox ON DELETE CASCADE,
    normalizer text NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE statesvc.normalized ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- One row a carrier that ever pushed. `low_water`: nothing ready lies before it, as far as claims have seen; only the
-- sweep reads below. The lane named '' holds the mark of the leases.
CREATE TABLE statesvc.lane (
    carrier_id text PRIMARY KEY,
    low_water timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO statesvc.lane (carrier_id) VALUES ('');

-- The dial: which version reads a carrier's messages, and the kill switch. Carrier '*' stands for all. Read by the claim.
CREATE TABLE statesvc.rollout (
    carrier_id text PRIMARY KEY,
    candidate text,
    percent smallint NOT NULL DEFAULT 0 CHECK (percent BETWEEN 0 AND 100),
    shadow boolean NOT NULL DEFAULT false,
    hold boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL DEFAULT '',
    CHECK (candidate IS NOT NULL OR (percent = 0 AND NOT shadow))
);

-- The verdict on a message. `sealed_key` is the body's key, wrapped under the keys of `shipments` in their order (the last
-- one outermost); under the inbox key when it names none; NULL once one of them was erased.
CREATE TABLE statesvc.message (
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    settled_at timestamptz NOT NULL,
    attempts smallint NOT NULL,
    events int NOT NULL,
    carrier_id text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('applied', 'empty')),
    normalizer text NOT NULL,
    worker text NOT NULL,
    shipments uuid[] NOT NULL,
    sealed_key bytea,
    PRIMARY KEY (message_id, received_at)
) PARTITION BY RANGE (received_at);

INSERT INTO statesvc.partitioned (table_name, step, steps_ahead, append_only) VALUES
    ('body', 'day', 7, false),
    ('message', 'month', 3, false);

-- What waits for a human. A message keeps its key here, so that it can be replayed; a code is listed once per (carrier,
-- type, code), its count is derived from the log.
CREATE TABLE statesvc.dead_letter (
    dead_letter_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('message', 'code', 'notification')),
    cause text NOT NULL,
    carrier_id text NOT NULL,
    created_at timestamptz NOT NULL,
    message_id uuid,
    received_at timestamptz,
    raw_type text,
    raw_code text,
    webhook_id text,
    detail text NOT NULL DEFAULT '',
    attempts smallint NOT NULL DEFAULT 0,
    worker text,
    normalizer text,
    sealed_key bytea,
    resolved_at timestamptz,
    resolution text CHECK (resolution IN ('replayed', 'discarded')),
    resolved_by text,
    why text,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
CREATE UNIQUE INDEX dead_letter_code ON statesvc.dead_letter (carrier_id, coalesce(raw_type, ''), coalesce(raw_code, ''))
    WHERE kind = 'code' AND resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letter_message ON statesvc.dead_letter (message_id, cause) WHERE kind = 'message' AND resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letter_notification ON statesvc.dead_letter (webhook_id) WHERE kind = 'notification' AND resolved_at IS NULL;
CREATE INDEX dead_letter_open ON statesvc.dead_letter (dead_letter_id) WHERE resolved_at IS NULL;
