-- Messages: what carriers pushed, from the ACK to the verdict, and what decides how they are read.
--
-- `body` is written once at ingress (day partitions); `inbox` holds the narrow row that waits, is leased and goes away; `message`
-- keeps the verdict, and the key to the body under the shipments' keys; `receipt` recognises byte-identical retries for 48 hours, and
-- tasks of another broker until `retained_until`, so that a transfer which is repeated has no effect.
-- The rules by which rows of `inbox` move are in functions/claim_protocol.sql.

CREATE TABLE statesvc.receipt (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 16),
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    retries int NOT NULL DEFAULT 0,
    retained_until timestamptz
) WITH (fillfactor = 80);
-- received_at only grows with the heap, so a block range index finds what has expired at no cost to ingest
CREATE INDEX receipt_received ON statesvc.receipt USING brin (received_at) WITH (autosummarize = on);

CREATE TABLE statesvc.body (
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL CHECK (octet_length(commitment) = 32),
    headers jsonb NOT NULL,
    sealed bytea STORAGE EXTERNAL NOT NULL,  -- ciphertext does not compress
    PRIMARY KEY (message_id, received_at)
) PARTITION BY RANGE (received_at);

-- `available_at` is the one time that counts: of a new message, when it arrived or its ETA; after a retry, the end of the backoff;
-- while leased, the end of the lease. `eta`: of a message that was put for later, when.
--
-- `normalizer`: the foreign reading that leased it last, `name@version`; NULL: a worker that named none.
CREATE TABLE statesvc.inbox (
    message_id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    available_at timestamptz NOT NULL,
    eta timestamptz,
    leased_at timestamptz,
    token uuid,
    attempts smallint NOT NULL DEFAULT 0,
    retries smallint NOT NULL DEFAULT 0,
    postponed smallint NOT NULL DEFAULT 0,
    body_bytes int NOT NULL,
    carrier_id text NOT NULL,
    stage text NOT NULL DEFAULT 'raw' CHECK (stage IN ('raw', 'declined', 'normalized')),
    sealed_key bytea NOT NULL,
    worker text,
    last_error text,
    normalizer text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX inbox_ready ON statesvc.inbox (carrier_id, available_at, message_id) WHERE token IS NULL;
CREATE INDEX inbox_leased ON statesvc.inbox (available_at) WHERE token IS NOT NULL;
CREATE INDEX inbox_token ON statesvc.inbox (token) WHERE token IS NOT NULL;

-- In which of its carrier's 100 buckets a message is, by its id: those below `percent` are the candidate's share. 100: nothing is left to
-- read (it was handed over), or a foreign worker declined it. An index holds it, so it never changes.
CREATE FUNCTION statesvc.bucket(p_message_id uuid, p_carrier_id text, p_stage text) RETURNS int
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_digest bigint;
BEGIN
    IF p_stage <> 'raw' THEN
        RETURN 100;
    END IF;
    v_digest := ('x' || encode(substring(sha256(
        '\x726f6c6c6f75741f'::bytea || convert_to(p_carrier_id, 'UTF8') || '\x1f'::bytea || uuid_send(p_message_id)) FOR 8), 'hex'))::bit(64)::bigint;
    -- of the unsigned number, modulo 10,000
    RETURN (v_digest % 10000 + 10000 + CASE WHEN v_digest < 0 THEN 1616 ELSE 0 END) % 10000 / 100;
END
$$;
-- Is this message in the share of `p_percent`?
CREATE FUNCTION statesvc.in_share(p_message_id uuid, p_carrier_id text, p_percent int) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN statesvc.bucket(p_message_id, p_carrier_id, 'raw') < p_percent;
-- Where two readings share a carrier, each finds its own buckets, however much of the other's waits.
CREATE INDEX inbox_bucket ON statesvc.inbox (carrier_id, statesvc.bucket(message_id, carrier_id, stage), available_at) WHERE token IS NULL;

-- What a foreign worker read, until a Python worker appends it: canonical events, sealed like the body.
CREATE TABLE statesvc.normalized (
    message_id uuid PRIMARY KEY REFERENCES statesvc.inbox ON DELETE CASCADE,
    normalizer text NOT NULL,
    sealed bytea STORAGE EXTERNAL NOT NULL
);

-- One row per carrier that ever pushed. `low_water`: as far as claims have seen, nothing that is ready lies before it; only a sweep
-- reads below. A claim of raw messages alone has marks of its own, because what others handed over or declined may lie below them.
-- The lane named '' holds the marks of the leases.
CREATE TABLE statesvc.lane (
    carrier_id text PRIMARY KEY,
    low_water timestamptz NOT NULL DEFAULT '-infinity',
    raw_low_water timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO statesvc.lane (carrier_id) VALUES ('');

-- How much of each claim a carrier gets, and how many of its messages may be in workers' hands at a time (NULL: no bound). A carrier
-- without a row has weight 1 and no bound. Read by the claim, so a change is in effect at the next one.
CREATE TABLE statesvc.carrier_quota (
    carrier_id text PRIMARY KEY,
    weight float8 NOT NULL DEFAULT 1 CHECK (weight BETWEEN 0.01 AND 100),
    in_flight_max int CHECK (in_flight_max > 0),
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL DEFAULT ''
);

-- The rollout: which version reads a carrier's messages, the guard that turns it back, and the kill switch. Carrier '*' stands for all.
-- Read by the claim. `turned_at`: since when candidate, share and guard are as they are; the guard looks at nothing before it.
-- A reading with an `@` is foreign (`name@version`): its own fleet claims what falls to it. `stable` NULL: ours. `fallback_seconds`: what
-- its reader did not lease within that time, and does not ask for either, others may take.
CREATE TABLE statesvc.rollout (
    carrier_id text PRIMARY KEY,
    stable text CHECK (strpos(stable, '@') > 1),
    candidate text,
    percent smallint NOT NULL DEFAULT 0 CHECK (percent BETWEEN 0 AND 100),
    shadow boolean NOT NULL DEFAULT false,
    fallback_seconds int NOT NULL DEFAULT 30 CHECK (fallback_seconds > 0),
    hold boolean NOT NULL DEFAULT false,
    turned_at timestamptz,
    guard_messages int CHECK (guard_messages > 0),
    guard_errors_percent float8 CHECK (guard_errors_percent BETWEEN 0 AND 100),
    guard_differences_percent float8 CHECK (guard_differences_percent BETWEEN 0 AND 100),
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL DEFAULT '',
    CHECK (candidate IS NOT NULL OR (percent = 0 AND NOT shadow)),
    CHECK (candidate <> stable),
    CHECK (guard_messages IS NOT NULL OR (guard_errors_percent IS NULL AND guard_differences_percent IS NULL))
);

-- Who asked for messages of carriers with a foreign reading, and when last (to two seconds): `statesvc` are our own workers, carrier '*'
-- stands for all; `tried_at`: the same for trials. `fallbacks`: how many of a reading's messages others had to take, the last one at `fallback_at`.
CREATE TABLE statesvc.reader (
    normalizer text NOT NULL,
    carrier_id text NOT NULL,
    asked_at timestamptz,
    tried_at timestamptz,
    fallbacks bigint NOT NULL DEFAULT 0,
    fallback_at timestamptz,
    PRIMARY KEY (carrier_id, normalizer)
) WITH (fillfactor = 50);

-- A message that a foreign candidate is tried on, without effect: written by the transaction that settles the stable reading, leased by
-- a claim of stage `trial`, compared with that reading by a Python worker, and gone then. `sealed_key`: of the body, under the inbox key;
-- so an erasure deletes the row. `stable`, `stable_sealed`: the hand-over that took effect, where it is foreign; else our own version is
-- run again. `verdict`: NULL: it waits for the candidate, or is leased. `sealed`: the candidate's hand-over.
CREATE TABLE statesvc.trial (
    trial_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    available_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    token uuid,
    attempts smallint NOT NULL DEFAULT 0,
    body_bytes int NOT NULL,
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    stable text,
    stable_sealed bytea STORAGE EXTERNAL,
    shipments uuid[] NOT NULL,
    sealed_key bytea NOT NULL,
    verdict text CHECK (verdict IN ('read', 'declined')),
    sealed bytea STORAGE EXTERNAL,
    CHECK ((verdict IS NOT DISTINCT FROM 'read') = (sealed IS NOT NULL))
);
CREATE INDEX trial_carrier ON statesvc.trial (carrier_id, trial_id);
CREATE INDEX trial_waiting ON statesvc.trial (candidate, trial_id) WHERE verdict IS NULL;
CREATE INDEX trial_token ON statesvc.trial (token) WHERE token IS NOT NULL;
CREATE INDEX trial_compared ON statesvc.trial (trial_id) WHERE verdict IS NOT NULL;

-- What a candidate did is counted and compared in the next three tables and never in the log: they are evidence for a decision and
-- may be pruned.

-- One row per batch that a candidate read: the guard's window. Only the newest rows stay.
CREATE TABLE statesvc.rollout_batch (
    rollout_batch_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    messages int NOT NULL,
    errors int NOT NULL,
    differing int NOT NULL,
    PRIMARY KEY (carrier_id, rollout_batch_id)
);

-- Totals since the candidate was named, one row per worker, so that no two workers wait for each other. `measure`: messages, errors,
-- differing, or `field:` and the name of a field.
CREATE TABLE statesvc.rollout_count (
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    measure text NOT NULL,
    worker text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (carrier_id, candidate, measure, worker)
);

-- What the two versions read differently, field by field. Personal values are keyed digests. Only the newest rows stay.
CREATE TABLE statesvc.rollout_diff (
    diff_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at timestamptz NOT NULL,
    message_id uuid NOT NULL,
    carrier_id text NOT NULL,
    stable text NOT NULL,
    candidate text NOT NULL,
    event_id text,
    field text NOT NULL,
    stable_value text,
    candidate_value text,
    PRIMARY KEY (carrier_id, diff_id)
);

-- What each process that takes webhooks acknowledged, by carrier and minute: the minute of the message ids, by the process's clock. It is written
-- after the ACK, independently of the message, so that the reconciler can count what was promised without looking at what is stored. Also
-- when a carrier was last heard, and how often it pushes again what it has pushed.
CREATE TABLE statesvc.ack_count (
    carrier_id text NOT NULL,
    minute timestamptz NOT NULL,
    process text NOT NULL,
    accepted int NOT NULL,
    duplicates int NOT NULL,
    refused int NOT NULL,
    last_at timestamptz,
    PRIMARY KEY (carrier_id, minute, process)
) WITH (fillfactor = 50);
CREATE INDEX ack_count_minute ON statesvc.ack_count USING brin (minute) WITH (autosummarize = on);

-- How the promises were kept, by minute: of all processes together, written once a minute, for a week and a day. `counts`: how many took how
-- long, by the bounds of statesvc/telemetry/objectives.py.
CREATE TABLE statesvc.objective_minute (
    minute timestamptz NOT NULL,
    objective text NOT NULL,
    kept bigint NOT NULL,
    missed bigint NOT NULL,
    counts int[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (minute, objective)
) WITH (fillfactor = 70);

-- What the reconciler found. `settled`: a span is a minute of message ids (its seconds since 1970): of `expected` messages that were
-- acknowledged some are settled (or dead letters), some wait, and the rest is missing. `notified`: a span begins at an index of the sealed log:
-- of `expected` notifications some have ended, some wait. A span is looked at again at `check_at`, until nothing of it waits.
CREATE TABLE statesvc.reconciled (
    promise text NOT NULL CHECK (promise IN ('settled', 'notified')),
    begins bigint NOT NULL,
    ends bigint NOT NULL CHECK (ends > begins),
    recorded_at timestamptz NOT NULL,
    expected bigint NOT NULL,
    waiting bigint NOT NULL,
    missing bigint NOT NULL,
    check_at timestamptz,
    PRIMARY KEY (promise, begins)
);
CREATE INDEX reconciled_open ON statesvc.reconciled (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX reconciled_missing ON statesvc.reconciled (promise) WHERE missing > 0;

-- How a code is read, whatever the normalizer says: a code is learned without a deploy. It decides what the log says, so its rows are
-- never changed: the latest row of a code holds, and its revision stands in the normalizer version of the events that it read.
-- Type and code stand as they do in clear in the log; NULL: the carrier prints none. `raw_reason` and `raw_text` (the digest of the text
-- that accompanies them) narrow a row down; NULL: any. `kind` NULL: as the normalizer says, again.
CREATE TABLE statesvc.code_mapping (
    revision bigint PRIMARY KEY CHECK (revision > 0),
    carrier_id text NOT NULL,
    raw_type text,
    raw_code text,
    raw_reason text,
    raw_text text,
    kind text CHECK (kind IN ('scan', 'info')),
    status text CHECK (status <> 'unknown'),
    reason text,
    added_at timestamptz NOT NULL,
    added_by text NOT NULL,
    why text NOT NULL,
    CHECK (raw_type IS NOT NULL OR raw_code IS NOT NULL OR raw_text IS NOT NULL),
    CHECK ((kind IS NOT DISTINCT FROM 'scan') = (status IS NOT NULL)),
    CHECK (reason IS NULL OR status IS NOT NULL)
);
SELECT statesvc.make_append_only('statesvc.code_mapping');

-- The texts of mapped codes as an operator wrote them, sealed, by what stands for them: for lists and exports. Nothing is read by them, so
-- they go when no mapping in effect names them.
CREATE TABLE statesvc.mapped_text (
    carrier_id text NOT NULL,
    stand_in text NOT NULL,
    sealed bytea NOT NULL,
    PRIMARY KEY (carrier_id, stand_in)
);

-- The verdict on a message. `sealed_key` is the body's key, wrapped under a key that is derived from those of all `shipments`, which are
-- all that the message names; under the inbox key when it names none; NULL where nothing may open it: one of them was erased, or it names
-- too many and says nothing about them.
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

-- One row per attempt at a message that did not settle it. `retried`: given back after a transient failure; `lease_ended`: its worker
-- died, froze or was too slow, as found by the claim that took over; `buried`: it went to the dead letters. `attempt` counts within
-- one life of the message (a replay begins another), `attempt_id` orders all. `error`: a type, an SQLSTATE or a cause, never a value.
-- Written by the functions of the claim protocol, so attempts of foreign workers are here too. Upkeep deletes what is older than 90
-- days, unless its message still waits or is an open dead letter.
CREATE TABLE statesvc.message_attempt (
    attempt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id uuid NOT NULL,
    started_at timestamptz,
    ended_at timestamptz NOT NULL,
    attempt smallint NOT NULL,
    carrier_id text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('retried', 'lease_ended', 'buried')),
    worker text,
    error text CHECK (length(error) <= 200),
    normalizer text
);
CREATE INDEX message_attempt_message ON statesvc.message_attempt (message_id, attempt_id);
CREATE INDEX message_attempt_rescued ON statesvc.message_attempt (ended_at) WHERE outcome = 'lease_ended';
-- ended_at only grows with the heap
CREATE INDEX message_attempt_ended ON statesvc.message_attempt USING brin (ended_at) WITH (autosummarize = on);

-- What waits for a human. A message keeps its key here, so that it can be replayed. A code is listed once per (carrier, type, code);
-- its count comes from the log. `subscription_id`, `shipment_id` and `sequence` say which notification it is; `webhook_id` is a digest
-- of them. `run_id`: the run that resolved the dead letter, as the operator's action in the log names it.
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
    subscription_id uuid,
    shipment_id uuid,
    sequence int,
    detail text NOT NULL DEFAULT '',
    attempts smallint NOT NULL DEFAULT 0,
    worker text,
    normalizer text,
    sealed_key bytea,
    resolved_at timestamptz,
    resolution text CHECK (resolution IN ('replayed', 'discarded')),
    resolved_by text,
    why text,
    run_id uuid,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
CREATE UNIQUE INDEX dead_letter_code ON statesvc.dead_letter (carrier_id, coalesce(raw_type, ''), coalesce(raw_code, ''))
    WHERE kind = 'code' AND resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letter_message ON statesvc.dead_letter (message_id, cause) WHERE kind = 'message' AND resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letter_notification ON statesvc.dead_letter (webhook_id) WHERE kind = 'notification' AND resolved_at IS NULL;
CREATE INDEX dead_letter_open ON statesvc.dead_letter (dead_letter_id) WHERE resolved_at IS NULL;
-- Earlier and later dead letters of the same message or notification.
CREATE INDEX dead_letter_of_message ON statesvc.dead_letter (message_id) WHERE kind = 'message';
CREATE INDEX dead_letter_of_notification ON statesvc.dead_letter (webhook_id) WHERE webhook_id IS NOT NULL;
-- What was resolved long ago is forgotten.
CREATE INDEX dead_letter_resolved ON statesvc.dead_letter (resolved_at) WHERE resolved_at IS NOT NULL;
-- A message that waits for a human is sealed under the inbox key, because nobody could read whom it is about. An erasure looks into
-- these bodies for the number, and takes the key of those that name it.
CREATE INDEX dead_letter_sealed ON statesvc.dead_letter (carrier_id, dead_letter_id) WHERE sealed_key IS NOT NULL;

-- One row per running process of this service. It reports every few seconds that it is alive, and its row goes with a clean exit.
CREATE TABLE statesvc.worker (
    worker_id text PRIMARY KEY,
    role text NOT NULL,
    host text NOT NULL,
    pid int NOT NULL,
    version text NOT NULL,
    -- carrier_id/version, of workers: what each can read messages with
    normalizers text[] NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    stopping_at timestamptz,
    -- from one sign of life to the next
    beat_seconds real NOT NULL DEFAULT 10,
    -- of those that take webhooks: what they acknowledged and refused in the last minute, and the room on their disk
    ingest jsonb
) WITH (fillfactor = 50);

INSERT INTO statesvc.partitioned (table_name, step, steps_ahead, append_only) VALUES
    ('body', 'day', 7, false),
    ('message', 'month', 3, false);
