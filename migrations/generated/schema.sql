-- What the migrations make. No migration: nothing applies this file, `python -m tests.migrations.snapshot` writes it, and a test compares it.

-- Functions:
--   announce_log_ddl(why text) RETURNS void
--   await_sealing() RETURNS trigger
--   bucket(p_message_id uuid, p_carrier_id text, p_stage text) RETURNS integer
--   bury(p_token uuid, p_message_ids uuid[], p_causes text[], p_details text[], p_normalizers text[] DEFAULT NULL::text[]) RETURNS integer
--   bury_locked(p_message_id uuid, p_cause text, p_detail text, p_normalizer text DEFAULT NULL::text) RETURNS void
--   choose(p_lanes text[], p_starts timestamp with time zone[], p_low_waters timestamp with time zone[], p_weights double precision[],
--       p_rooms integer[], p_firsts integer[], p_lasts integer[], p_overdue timestamp with time zone[], p_stage text, p_sweep boolean,
--       p_now timestamp with time zone, p_limit integer, p_bytes_max bigint, p_at_least_one boolean, p_busy uuid[], OUT message_ids uuid[],
--       OUT seen integer, OUT lanes text[], OUT starts timestamp with time zone[], OUT low_waters timestamp with time zone[], OUT weights
--       double precision[], OUT rooms integer[], OUT firsts integer[], OUT lasts integer[], OUT overdue timestamp with time zone[], OUT
--       moving text[], OUT marks timestamp with time zone[]) RETURNS record
--   choose_all(p_limit integer, p_bytes_max bigint, p_now timestamp with time zone) RETURNS uuid[]
--   claim(p_worker text, p_limit integer, p_lease interval, p_stage text DEFAULT 'raw'::text, p_bytes_max bigint DEFAULT 4194304, p_sweep
--       boolean DEFAULT false, p_rescue_first boolean DEFAULT true, p_report_burials boolean DEFAULT false, p_report_complete boolean
--       DEFAULT false, p_normalizer text DEFAULT NULL::text, p_carriers text[] DEFAULT NULL::text[]) RETURNS TABLE(message_id uuid,
--       carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamp with time zone, stage text, candidate text,
--       percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea, normalized_by text, normalized
--       bytea, postponed smallint, rescued_from text, buried_for text, complete boolean, stable text, in_share boolean, fallback_for text)
--   claim_bounds(p_held text[], OUT bounded_carriers text[], OUT open_carriers text[], OUT rooms integer[], OUT full_carriers text[])
--       RETURNS record
--   claim_ready(p_token uuid, p_worker text, p_normalizer text, p_limit integer, p_lease interval, p_stage text, p_bytes_max bigint,
--       p_sweep boolean, p_now timestamp with time zone, p_without text[], p_open text[], p_rooms integer[], p_split text[], p_firsts
--       integer[], p_lasts integer[], p_overdue timestamp with time zone[], OUT message_ids uuid[], OUT since timestamp with time zone, OUT
--       until timestamp with time zone, OUT moving text[], OUT marks timestamp with time zone[]) RETURNS record
--   claim_suspect(p_token uuid, p_worker text, p_normalizer text, p_lease interval, p_stage text, p_now timestamp with time zone, p_from
--       timestamp with time zone, p_held text[], p_full text[], p_split text[], p_firsts integer[], p_lasts integer[], p_overdue timestamp
--       with time zone[], OUT message_id uuid, OUT received_at timestamp with time zone, OUT rescued_from text, OUT buried uuid[], OUT
--       buried_carriers text[]) RETURNS record
--   claim_trials(p_token uuid, p_normalizer text, p_carriers text[], p_without text[], p_limit integer, p_lease interval, p_bytes_max
--       bigint, p_now timestamp with time zone) RETURNS TABLE(message_id uuid, carrier_id text, attempts smallint, received_at timestamp
--       with time zone, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea)
--   clock() RETURNS timestamp with time zone
--   decline(p_token uuid, p_message_ids uuid[]) RETURNS integer
--   drop_archived_day(p_day date, p_sha256 bytea) RETURNS bigint
--   drop_expired_messages() RETURNS date
--   drop_log_month(p_month date, p_sha256 bytea, p_active_since timestamp with time zone) RETURNS bigint
--   enable_triggers() RETURNS SETOF text
--   end_trials(p_token uuid, p_message_ids uuid[], p_verdict text, p_delay interval DEFAULT '00:00:00'::interval) RETURNS integer
--   ensure_partitions() RETURNS SETOF text
--   extend(p_token uuid, p_lease interval) RETURNS integer
--   extend_trials(p_token uuid, p_lease interval) RETURNS integer
--   forget_named_streams(p_limit integer) RETURNS bigint
--   has_code(raw_type text, raw_code text, raw_reason text, raw_text text, p_type text, p_code text, p_reason text, p_text text) RETURNS
--       boolean
--   held(p_carrier_id text) RETURNS boolean
--   hold_leased(p_token uuid, p_message_ids uuid[], p_lock_milliseconds integer) RETURNS SETOF uuid
--   holds_key(p_packed bytea, p_event_id text) RETURNS boolean
--   in_share(p_message_id uuid, p_carrier_id text, p_percent integer) RETURNS boolean
--   last_attempt(p_subscription_id uuid, p_shipment_id uuid, p_sequence integer) RETURNS integer
--   leaf_hash(p_leaf_hashes bytea, p_ordinal integer) RETURNS bytea
--   lock_lanes(p_carrier_ids text[]) RETURNS text[]
--   make_append_only(target regclass) RETURNS void
--   mark_margin() RETURNS interval
--   move_marks(p_stage text, p_sweep boolean, p_now timestamp with time zone, p_lease_mark timestamp with time zone, p_moving text[],
--       p_marks timestamp with time zone[]) RETURNS void
--   name_shipments(p_message_id uuid, p_received_at timestamp with time zone, p_shipments uuid[], p_sealed_key bytea) RETURNS boolean
--   next_batch_id() RETURNS bigint
--   next_due() RETURNS timestamp with time zone
--   note_attempt(p_message_id uuid, p_outcome text, p_ended_at timestamp with time zone, p_error text DEFAULT NULL::text, p_normalizer text
--       DEFAULT NULL::text) RETURNS void
--   note_fallbacks(p_message_ids uuid[], p_now timestamp with time zone) RETURNS void
--   note_reader(p_stage text, p_normalizer text, p_carriers text[], p_now timestamp with time zone) RETURNS void
--   note_touched() RETURNS trigger
--   open_notifications(p_subscription_id uuid, OUT open bigint, OUT open_since timestamp with time zone, OUT open_until timestamp with time
--       zone) RETURNS record
--   pack_keys(p_carrier_id text, p_event_id text, p_limit integer, OUT carrier_id text, OUT event_id text, OUT packed bigint) RETURNS
--       record
--   packed_key(p_event_id text) RETURNS bytea
--   packed_values(p_event_id text, p_attribute_digests bytea) RETURNS bytea
--   postpone(p_token uuid, p_message_ids uuid[]) RETURNS integer
--   put(p_message_ids uuid[], p_carrier_ids text[], p_digests bytea[], p_sealed bytea[], p_sealed_keys bytea[], p_commitments bytea[],
--       p_headers jsonb[], p_body_bytes integer[], p_etas timestamp with time zone[] DEFAULT NULL::timestamp with time zone[],
--       p_receipts_until timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], p_acknowledged timestamp with time zone[]
--       DEFAULT NULL::timestamp with time zone[]) RETURNS TABLE(ordinal integer, message_id uuid, duplicate boolean)
--   read_claimed(p_message_ids uuid[], p_since timestamp with time zone, p_until timestamp with time zone) RETURNS TABLE(message_id uuid,
--       carrier_id text, token uuid, attempts smallint, retries smallint, received_at timestamp with time zone, stage text, candidate text,
--       percent smallint, shadow boolean, sealed_key bytea, commitment bytea, headers jsonb, sealed bytea, normalized_by text, normalized
--       bytea, postponed smallint, stable text, in_share boolean, fallback_for text)
--   reader_of(p_rollout statesvc.rollout, p_bucket integer) RETURNS text
--   readings(p_stage text, p_normalizer text, p_now timestamp with time zone, OUT without text[], OUT split text[], OUT firsts integer[],
--       OUT lasts integer[], OUT overdue timestamp with time zone[]) RETURNS record
--   receipt_ended(r statesvc.receipt, p_now timestamp with time zone) RETURNS boolean
--   refuse_change() RETURNS trigger
--   refuse_unpacked() RETURNS trigger
--   release(p_token uuid) RETURNS integer
--   replay_dead_letters(p_ids bigint[], p_actor text, p_why text, p_run_id uuid) RETURNS TABLE(dead_letter_id bigint, obstacle text)
--   replay_obstacle(d statesvc.dead_letter) RETURNS text
--   require_all(p_written bigint, p_wanted integer) RETURNS void
--   retry(p_token uuid, p_message_ids uuid[], p_delays interval[], p_errors text[], p_normalizers text[] DEFAULT NULL::text[]) RETURNS
--       integer
--   sample_little(target regclass) RETURNS void
--   sequences_behind() RETURNS TABLE(sequence_name text, column_name text, next_value bigint, highest bigint)
--   settle(p_token uuid, p_results jsonb) RETURNS integer
--   settle_trials(p_token uuid, p_results jsonb) RETURNS integer
--   silent_carriers() RETURNS TABLE(carrier_id text, silent_since timestamp with time zone)
--   sources_of_absent(p_shipment_id uuid) RETURNS uuid[]
--   take(p_token uuid, p_worker text, p_normalizer text, p_lease interval, p_now timestamp with time zone, p_message_ids uuid[], OUT
--       message_ids uuid[], OUT bytes bigint, OUT since timestamp with time zone, OUT until timestamp with time zone) RETURNS record
--   throttled() RETURNS boolean
--   tries_of(p_sequence integer, p_number integer, p_outcome text, p_status_code smallint, p_duration_ms integer, p_started_at timestamp
--       with time zone, p_tries jsonb) RETURNS TABLE(sequence integer, number integer, outcome text, status_code integer, duration_ms
--       integer, started_at timestamp with time zone)
--   under_legal_hold(p_shipments uuid[]) RETURNS boolean
--   waiting_token(p_attempts smallint, p_retries smallint) RETURNS uuid
--   webhook_id(p_subscription_id uuid, p_leaf_hash bytea) RETURNS text

CREATE SCHEMA statesvc;
CREATE SEQUENCE statesvc.batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE statesvc.batch_id_seq OWNED BY statesvc.batch.batch_id;

CREATE TABLE statesvc.ack_count (
    carrier_id text NOT NULL,
    minute timestamp with time zone NOT NULL,
    process text NOT NULL,
    accepted integer NOT NULL,
    duplicates integer NOT NULL,
    refused integer NOT NULL,
    last_at timestamp with time zone
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.ack_count
    ADD CONSTRAINT ack_count_pkey PRIMARY KEY (carrier_id, minute, process);
CREATE INDEX ack_count_minute ON statesvc.ack_count USING brin (minute) WITH (autosummarize='on');

CREATE TABLE statesvc.action (
    recorded_at timestamp with time zone NOT NULL,
    batch_id bigint NOT NULL,
    ordinal integer NOT NULL,
    actor text NOT NULL,
    verb text NOT NULL,
    target text NOT NULL,
    canonical bytea NOT NULL,
    CONSTRAINT action_ordinal_check CHECK ((ordinal >= 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.action
    ADD CONSTRAINT action_pkey PRIMARY KEY (batch_id, ordinal, recorded_at);
CREATE INDEX action_target ON ONLY statesvc.action USING btree (target);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.action FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.action ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.api_key (
    key_id text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    key_hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    revoked_at timestamp with time zone,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_key_key_hash_check CHECK ((octet_length(key_hash) = 32)),
    CONSTRAINT api_key_owner_check CHECK ((owner ~ '^[!-~]{1,100}$'::text))
);
ALTER TABLE ONLY statesvc.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (key_id);
CREATE INDEX api_key_owner ON statesvc.api_key USING btree (owner);

CREATE TABLE statesvc.archive_refusal (
    one_row boolean DEFAULT true NOT NULL,
    why text NOT NULL,
    since timestamp with time zone NOT NULL,
    noted_at timestamp with time zone NOT NULL,
    CONSTRAINT archive_refusal_one_row_check CHECK (one_row)
);
ALTER TABLE ONLY statesvc.archive_refusal
    ADD CONSTRAINT archive_refusal_pkey PRIMARY KEY (one_row);

CREATE TABLE statesvc.attempt (
    shipment_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    batch_id bigint NOT NULL,
    sequence integer NOT NULL,
    ordinal integer NOT NULL,
    number integer NOT NULL,
    duration_ms integer,
    status_code smallint,
    outcome text NOT NULL,
    tries jsonb,
    canonical bytea NOT NULL,
    sealed_part bytea,
    CONSTRAINT attempt_check CHECK (((tries IS NULL) = ((started_at IS NOT NULL) AND (duration_ms IS NOT NULL)))),
    CONSTRAINT attempt_check1 CHECK (((tries IS NOT NULL) OR ((number = 1) AND (outcome = 'delivered'::text)))),
    CONSTRAINT attempt_number_check CHECK ((number >= 0)),
    CONSTRAINT attempt_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT attempt_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'given_up'::text, 'cancelled'::text, 'late'::text])))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (shipment_id, sequence, subscription_id, batch_id, recorded_at);
CREATE INDEX attempt_batch ON ONLY statesvc.attempt USING btree (batch_id);
CREATE INDEX attempt_subscription ON ONLY statesvc.attempt USING btree (subscription_id, recorded_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.attempt FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.attempt ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.awaited_number (
    number text NOT NULL,
    carrier_id text NOT NULL,
    hours integer NOT NULL,
    awaited_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    observed_at timestamp with time zone,
    CONSTRAINT awaited_number_hours_check CHECK ((hours > 0))
);
ALTER TABLE ONLY statesvc.awaited_number
    ADD CONSTRAINT awaited_number_pkey PRIMARY KEY (number, carrier_id);
CREATE INDEX awaited_number_due ON statesvc.awaited_number USING btree (due_at);

CREATE TABLE statesvc.batch (
    batch_id bigint DEFAULT statesvc.next_batch_id() NOT NULL,
    recorded_from timestamp with time zone NOT NULL,
    recorded_to timestamp with time zone NOT NULL,
    entries integer NOT NULL,
    leaf_hashes bytea NOT NULL,
    writer text NOT NULL,
    CONSTRAINT batch_check CHECK ((recorded_to >= recorded_from)),
    CONSTRAINT batch_check1 CHECK ((octet_length(leaf_hashes) = (32 * entries))),
    CONSTRAINT batch_entries_check CHECK ((entries > 0))
)
PARTITION BY RANGE (recorded_from);
ALTER TABLE ONLY statesvc.batch
    ADD CONSTRAINT batch_pkey PRIMARY KEY (batch_id, recorded_from);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.batch FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.batch ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER await_sealing AFTER INSERT ON statesvc.batch FOR EACH ROW EXECUTE FUNCTION statesvc.await_sealing();
ALTER TABLE statesvc.batch ENABLE ALWAYS TRIGGER await_sealing;

CREATE TABLE statesvc.body (
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL,
    headers jsonb NOT NULL,
    sealed bytea NOT NULL,
    CONSTRAINT body_commitment_check CHECK ((octet_length(commitment) = 32))
)
PARTITION BY RANGE (received_at);
ALTER TABLE ONLY statesvc.body ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE ONLY statesvc.body
    ADD CONSTRAINT body_pkey PRIMARY KEY (message_id, received_at);

CREATE TABLE statesvc.body_archive (
    day date NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    file_name text,
    sha256 bytea,
    size_bytes bigint,
    bodies bigint,
    compressed bigint,
    unopened bigint,
    erased bigint,
    written_at timestamp with time zone,
    verified_at timestamp with time zone,
    dropped_at timestamp with time zone,
    expired_at timestamp with time zone,
    deleted_at timestamp with time zone,
    checked_at timestamp with time zone,
    fault text,
    lost_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    failed_at timestamp with time zone,
    failure text,
    CONSTRAINT body_archive_check CHECK (((written_at IS NULL) = (file_name IS NULL))),
    CONSTRAINT body_archive_check1 CHECK ((num_nulls(written_at, sha256, size_bytes, bodies, compressed, unopened, erased) = ANY (ARRAY[0, 7]))),
    CONSTRAINT body_archive_check2 CHECK ((bodies = ((compressed + unopened) + erased))),
    CONSTRAINT body_archive_check3 CHECK (((verified_at IS NULL) OR (written_at IS NOT NULL))),
    CONSTRAINT body_archive_check4 CHECK (((dropped_at IS NULL) OR (verified_at IS NOT NULL))),
    CONSTRAINT body_archive_check5 CHECK (((expired_at IS NULL) OR (dropped_at IS NOT NULL))),
    CONSTRAINT body_archive_check6 CHECK (((deleted_at IS NULL) OR (expired_at IS NOT NULL))),
    CONSTRAINT body_archive_check7 CHECK (((lost_at IS NULL) OR (dropped_at IS NOT NULL))),
    CONSTRAINT body_archive_sha256_check CHECK ((octet_length(sha256) = 32))
);
ALTER TABLE ONLY statesvc.body_archive
    ADD CONSTRAINT body_archive_pkey PRIMARY KEY (day);

CREATE TABLE statesvc.body_retained (
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL,
    headers jsonb NOT NULL,
    sealed bytea NOT NULL,
    CONSTRAINT body_retained_commitment_check CHECK ((octet_length(commitment) = 32))
);
ALTER TABLE ONLY statesvc.body_retained ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE ONLY statesvc.body_retained
    ADD CONSTRAINT body_retained_pkey PRIMARY KEY (message_id);

CREATE TABLE statesvc.carrier_quota (
    carrier_id text NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    in_flight_max integer,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    why text DEFAULT ''::text NOT NULL,
    CONSTRAINT carrier_quota_in_flight_max_check CHECK ((in_flight_max > 0)),
    CONSTRAINT carrier_quota_weight_check CHECK (((weight >= (0.01)::double precision) AND (weight <= (100)::double precision)))
);
ALTER TABLE ONLY statesvc.carrier_quota
    ADD CONSTRAINT carrier_quota_pkey PRIMARY KEY (carrier_id);

CREATE TABLE statesvc.checkpoint (
    tree_size bigint NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_root_check CHECK ((octet_length(root) = 32)),
    CONSTRAINT checkpoint_tree_size_check CHECK ((tree_size > 0))
);
ALTER TABLE ONLY statesvc.checkpoint
    ADD CONSTRAINT checkpoint_created_at_key UNIQUE (created_at);
ALTER TABLE ONLY statesvc.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (tree_size);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.checkpoint ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.checkpoint_stamp (
    tree_size bigint NOT NULL,
    stamped_at timestamp with time zone NOT NULL,
    authority text NOT NULL,
    token bytea NOT NULL,
    received_at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_stamp_token_check CHECK (((octet_length(token) >= 1) AND (octet_length(token) <= 65536))),
    CONSTRAINT checkpoint_stamp_tree_size_check CHECK ((tree_size > 0))
);
ALTER TABLE ONLY statesvc.checkpoint_stamp
    ADD CONSTRAINT checkpoint_stamp_pkey PRIMARY KEY (tree_size, stamped_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.checkpoint_stamp FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.checkpoint_stamp ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.code_mapping (
    revision bigint NOT NULL,
    carrier_id text NOT NULL,
    raw_type text,
    raw_code text,
    raw_reason text,
    raw_text text,
    kind text,
    status text,
    reason text,
    added_at timestamp with time zone NOT NULL,
    added_by text NOT NULL,
    why text NOT NULL,
    CONSTRAINT code_mapping_check CHECK (((raw_type IS NOT NULL) OR (raw_code IS NOT NULL) OR (raw_text IS NOT NULL))),
    CONSTRAINT code_mapping_check1 CHECK (((NOT (kind IS DISTINCT FROM 'scan'::text)) = (status IS NOT NULL))),
    CONSTRAINT code_mapping_check2 CHECK (((reason IS NULL) OR (status IS NOT NULL))),
    CONSTRAINT code_mapping_kind_check CHECK ((kind = ANY (ARRAY['scan'::text, 'info'::text]))),
    CONSTRAINT code_mapping_revision_check CHECK ((revision > 0)),
    CONSTRAINT code_mapping_status_check CHECK ((status <> 'unknown'::text))
);
ALTER TABLE ONLY statesvc.code_mapping
    ADD CONSTRAINT code_mapping_pkey PRIMARY KEY (revision);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.code_mapping FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.code_mapping ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.conflict (
    shipment_id uuid NOT NULL,
    claimed_shipment_id uuid NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    message_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    ordinal integer NOT NULL,
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL,
    canonical bytea NOT NULL,
    sealed_part bytea,
    CONSTRAINT conflict_facts_digest_check CHECK ((octet_length(facts_digest) = 33)),
    CONSTRAINT conflict_ordinal_check CHECK ((ordinal >= 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.conflict
    ADD CONSTRAINT conflict_pkey PRIMARY KEY (shipment_id, batch_id, ordinal, recorded_at);
CREATE INDEX conflict_batch ON ONLY statesvc.conflict USING btree (batch_id);
CREATE INDEX conflict_claimed ON ONLY statesvc.conflict USING btree (claimed_shipment_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.conflict FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.conflict ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.conflict_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    facts_digest bytea NOT NULL,
    shipment_id uuid NOT NULL,
    claimed_shipment_id uuid NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    seen bigint DEFAULT 1 NOT NULL,
    last_seen_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY statesvc.conflict_key
    ADD CONSTRAINT conflict_key_pkey PRIMARY KEY (carrier_id, event_id, facts_digest);
CREATE INDEX conflict_key_claimed ON statesvc.conflict_key USING btree (claimed_shipment_id, recorded_at);
CREATE INDEX conflict_key_shipment ON statesvc.conflict_key USING btree (shipment_id, recorded_at);

CREATE TABLE statesvc.console_session (
    token_hash bytea NOT NULL,
    key_id text NOT NULL,
    key_hash bytea NOT NULL,
    may_change boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT console_session_check CHECK ((expires_at > created_at)),
    CONSTRAINT console_session_key_hash_check CHECK ((octet_length(key_hash) = 32)),
    CONSTRAINT console_session_token_hash_check CHECK ((octet_length(token_hash) = 32))
);
ALTER TABLE ONLY statesvc.console_session
    ADD CONSTRAINT console_session_pkey PRIMARY KEY (token_hash);
CREATE INDEX console_session_key ON statesvc.console_session USING btree (key_id, created_at);

CREATE TABLE statesvc.cosigned_head (
    one_row boolean DEFAULT true NOT NULL,
    tree_size bigint,
    second_signature text,
    cosignatures text,
    faults text[] NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    CONSTRAINT cosigned_head_one_row_check CHECK (one_row)
);
ALTER TABLE ONLY statesvc.cosigned_head
    ADD CONSTRAINT cosigned_head_pkey PRIMARY KEY (one_row);

CREATE TABLE statesvc.dead_letter (
    dead_letter_id bigint NOT NULL,
    kind text NOT NULL,
    cause text NOT NULL,
    carrier_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    message_id uuid,
    received_at timestamp with time zone,
    raw_type text,
    raw_code text,
    webhook_id text,
    subscription_id uuid,
    shipment_id uuid,
    sequence integer,
    detail text DEFAULT ''::text NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    worker text,
    normalizer text,
    sealed_key bytea,
    resolved_at timestamp with time zone,
    resolution text,
    resolved_by text,
    why text,
    run_id uuid,
    CONSTRAINT dead_letter_check CHECK (((resolved_at IS NULL) = (resolution IS NULL))),
    CONSTRAINT dead_letter_kind_check CHECK ((kind = ANY (ARRAY['message'::text, 'code'::text, 'notification'::text]))),
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['replayed'::text, 'discarded'::text])))
);
ALTER TABLE statesvc.dead_letter ALTER COLUMN dead_letter_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.dead_letter_dead_letter_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (dead_letter_id);
CREATE UNIQUE INDEX dead_letter_code_and_text ON statesvc.dead_letter USING btree (carrier_id, COALESCE(raw_type, ''::text), COALESCE(raw_code, ''::text), detail) WHERE ((kind = 'code'::text) AND (resolved_at IS NULL));
CREATE UNIQUE INDEX dead_letter_message ON statesvc.dead_letter USING btree (message_id, cause) WHERE ((kind = 'message'::text) AND (resolved_at IS NULL));
CREATE UNIQUE INDEX dead_letter_notification ON statesvc.dead_letter USING btree (webhook_id) WHERE ((kind = 'notification'::text) AND (resolved_at IS NULL));
CREATE INDEX dead_letter_of_message ON statesvc.dead_letter USING btree (message_id) WHERE (kind = 'message'::text);
CREATE INDEX dead_letter_of_notification ON statesvc.dead_letter USING btree (webhook_id) WHERE (webhook_id IS NOT NULL);
CREATE INDEX dead_letter_open ON statesvc.dead_letter USING btree (dead_letter_id) WHERE (resolved_at IS NULL);
CREATE INDEX dead_letter_resolved ON statesvc.dead_letter USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);
CREATE INDEX dead_letter_sealed ON statesvc.dead_letter USING btree (carrier_id, dead_letter_id) WHERE (sealed_key IS NOT NULL);

CREATE TABLE statesvc.event (
    shipment_id uuid NOT NULL,
    message_id uuid NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    received_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    batch_id bigint NOT NULL,
    version integer NOT NULL,
    ordinal integer NOT NULL,
    occurred_offset_seconds integer NOT NULL,
    by_category boolean NOT NULL,
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL,
    status text,
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
    CONSTRAINT event_kind_check CHECK ((kind = ANY (ARRAY['scan'::text, 'info'::text, 'correction'::text, 'unmapped'::text]))),
    CONSTRAINT event_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT event_status_check CHECK ((status <> 'unknown'::text)),
    CONSTRAINT event_version_check CHECK ((version > 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (shipment_id, version, recorded_at);
CREATE INDEX event_batch ON ONLY statesvc.event USING btree (batch_id);
CREATE INDEX event_unmapped ON ONLY statesvc.event USING btree (carrier_id, carrier_code text_pattern_ops) WHERE ((kind = 'unmapped'::text) OR by_category);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.event FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.event ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.event_key (
    carrier_id text NOT NULL,
    event_id text NOT NULL,
    shipment_id uuid NOT NULL,
    facts_digest bytea NOT NULL,
    attribute_digests bytea NOT NULL,
    alias_of text,
    CONSTRAINT event_key_attribute_digests_check CHECK (((octet_length(attribute_digests) % 8) = 0)),
    CONSTRAINT event_key_facts_digest_check CHECK ((octet_length(facts_digest) = ANY (ARRAY[0, 33])))
);
ALTER TABLE ONLY statesvc.event_key
    ADD CONSTRAINT event_key_pkey PRIMARY KEY (carrier_id, event_id);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON statesvc.event_key FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.event_key ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER only_packing BEFORE DELETE ON statesvc.event_key FOR EACH STATEMENT WHEN ((current_setting('statesvc.packing_keys'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.event_key ENABLE ALWAYS TRIGGER only_packing;
CREATE TRIGGER refuse_unpacked BEFORE DELETE ON statesvc.event_key FOR EACH ROW EXECUTE FUNCTION statesvc.refuse_unpacked();
ALTER TABLE statesvc.event_key ENABLE ALWAYS TRIGGER refuse_unpacked;

CREATE TABLE statesvc.expectation_rules (
    carrier_id text NOT NULL,
    service text DEFAULT ''::text NOT NULL,
    revision bigint NOT NULL,
    rules jsonb NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL,
    rearm_recorded_at timestamp with time zone,
    rearm_shipment_id uuid,
    CONSTRAINT expectation_rules_check CHECK (((carrier_id <> '*'::text) OR (service = ''::text))),
    CONSTRAINT expectation_rules_check1 CHECK (((rearm_recorded_at IS NULL) = (rearm_shipment_id IS NULL))),
    CONSTRAINT expectation_rules_revision_check CHECK ((revision > 0)),
    CONSTRAINT expectation_rules_service_check CHECK ((length(service) <= 80))
);
ALTER TABLE ONLY statesvc.expectation_rules
    ADD CONSTRAINT expectation_rules_pkey PRIMARY KEY (carrier_id, service);

CREATE TABLE statesvc.fanout (
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    batch_id bigint NOT NULL,
    ordinal integer NOT NULL,
    subscriptions uuid[] NOT NULL,
    replayed boolean NOT NULL,
    canonical bytea NOT NULL,
    CONSTRAINT fanout_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT fanout_sequence_check CHECK ((sequence <> 0)),
    CONSTRAINT fanout_subscriptions_check CHECK ((cardinality(subscriptions) > 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.fanout
    ADD CONSTRAINT fanout_pkey PRIMARY KEY (shipment_id, sequence, batch_id, recorded_at);
CREATE INDEX fanout_batch ON ONLY statesvc.fanout USING btree (batch_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.fanout FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.fanout ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.inbox (
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone NOT NULL,
    eta timestamp with time zone,
    leased_at timestamp with time zone,
    token uuid,
    attempts smallint DEFAULT 0 NOT NULL,
    retries smallint DEFAULT 0 NOT NULL,
    postponed smallint DEFAULT 0 NOT NULL,
    body_bytes integer NOT NULL,
    carrier_id text NOT NULL,
    stage text DEFAULT 'raw'::text NOT NULL,
    sealed_key bytea NOT NULL,
    worker text,
    last_error text,
    normalizer text,
    CONSTRAINT inbox_stage_check CHECK ((stage = ANY (ARRAY['raw'::text, 'declined'::text, 'normalized'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.1');
ALTER TABLE ONLY statesvc.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (message_id);
CREATE INDEX inbox_bucket ON statesvc.inbox USING btree (carrier_id, statesvc.bucket(message_id, carrier_id, stage), available_at) WHERE (token IS NULL);
CREATE INDEX inbox_leased ON statesvc.inbox USING btree (available_at) WHERE (token IS NOT NULL);
CREATE INDEX inbox_ready ON statesvc.inbox USING btree (carrier_id, available_at, message_id) WHERE (token IS NULL);
CREATE INDEX inbox_token ON statesvc.inbox USING btree (token) WHERE (token IS NOT NULL);

CREATE TABLE statesvc.lane (
    carrier_id text NOT NULL,
    low_water timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    raw_low_water timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (carrier_id);

CREATE TABLE statesvc.legal_hold (
    legal_hold_id bigint NOT NULL,
    carrier_id text NOT NULL,
    number text NOT NULL,
    tracking_number text NOT NULL,
    placed_at timestamp with time zone NOT NULL,
    placed_by text NOT NULL,
    why text NOT NULL,
    released_at timestamp with time zone,
    released_by text,
    released_why text,
    CONSTRAINT legal_hold_check CHECK ((num_nulls(released_at, released_by, released_why) = ANY (ARRAY[0, 3]))),
    CONSTRAINT legal_hold_why_check CHECK ((why <> ''::text))
);
ALTER TABLE statesvc.legal_hold ALTER COLUMN legal_hold_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.legal_hold_legal_hold_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.legal_hold
    ADD CONSTRAINT legal_hold_pkey PRIMARY KEY (legal_hold_id);
CREATE UNIQUE INDEX legal_hold_open ON statesvc.legal_hold USING btree (carrier_id, number) WHERE (released_at IS NULL);

CREATE TABLE statesvc.limiter_state (
    subscription_id uuid NOT NULL,
    worker text NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    concurrency integer NOT NULL,
    in_flight integer NOT NULL,
    mean_latency_seconds double precision,
    breaker text NOT NULL,
    open_until timestamp with time zone,
    CONSTRAINT limiter_state_breaker_check CHECK ((breaker = ANY (ARRAY['closed'::text, 'open'::text, 'half_open'::text])))
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.limiter_state
    ADD CONSTRAINT limiter_state_pkey PRIMARY KEY (subscription_id, worker);

CREATE TABLE statesvc.log_archive (
    month date NOT NULL,
    begins timestamp with time zone NOT NULL,
    ends timestamp with time zone NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    file_name text,
    sha256 bytea,
    index_sha256 bytea,
    size_bytes bigint,
    tree_size bigint,
    first_index bigint,
    last_index bigint,
    first_batch bigint,
    last_batch bigint,
    events bigint,
    conflicts bigint,
    transitions bigint,
    fanouts bigint,
    attempts bigint,
    observations bigint,
    actions bigint,
    written_at timestamp with time zone,
    verified_at timestamp with time zone,
    leaving_at timestamp with time zone,
    dropped_at timestamp with time zone,
    packed_at timestamp with time zone,
    lost_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    failed_at timestamp with time zone,
    failure text,
    CONSTRAINT log_archive_check CHECK ((ends > begins)),
    CONSTRAINT log_archive_check1 CHECK ((num_nulls(written_at, file_name, sha256, index_sha256, size_bytes, tree_size, first_index, last_index, first_batch, last_batch, events, conflicts, transitions, fanouts, attempts, observations, actions) = ANY (ARRAY[0, 17]))),
    CONSTRAINT log_archive_check2 CHECK (((tree_size > last_index) AND (last_index >= first_index))),
    CONSTRAINT log_archive_check3 CHECK (((verified_at IS NULL) OR (written_at IS NOT NULL))),
    CONSTRAINT log_archive_check4 CHECK (((leaving_at IS NULL) OR (verified_at IS NOT NULL))),
    CONSTRAINT log_archive_check5 CHECK (((dropped_at IS NULL) OR (leaving_at IS NOT NULL))),
    CONSTRAINT log_archive_check6 CHECK (((packed_at IS NULL) OR (dropped_at IS NOT NULL))),
    CONSTRAINT log_archive_check7 CHECK (((lost_at IS NULL) OR (dropped_at IS NOT NULL))),
    CONSTRAINT log_archive_index_sha256_check CHECK ((octet_length(index_sha256) = 32)),
    CONSTRAINT log_archive_month_check CHECK ((EXTRACT(day FROM month) = (1)::numeric)),
    CONSTRAINT log_archive_sha256_check CHECK ((octet_length(sha256) = 32))
);
ALTER TABLE ONLY statesvc.log_archive
    ADD CONSTRAINT log_archive_pkey PRIMARY KEY (month);

CREATE TABLE statesvc.log_epoch (
    epoch integer NOT NULL,
    begins bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    CONSTRAINT log_epoch_begins_check CHECK ((begins >= 0)),
    CONSTRAINT log_epoch_epoch_check CHECK ((epoch > 0))
);
ALTER TABLE ONLY statesvc.log_epoch
    ADD CONSTRAINT log_epoch_begins_key UNIQUE (begins);
ALTER TABLE ONLY statesvc.log_epoch
    ADD CONSTRAINT log_epoch_pkey PRIMARY KEY (epoch);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.log_epoch FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.log_epoch ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.log_resident (
    shipment_id uuid NOT NULL,
    month date NOT NULL,
    retained_at timestamp with time zone NOT NULL,
    why text NOT NULL,
    CONSTRAINT log_resident_why_check CHECK ((why = ANY (ARRAY['held'::text, 'active'::text, 'unread'::text, 'asked'::text])))
);
ALTER TABLE ONLY statesvc.log_resident
    ADD CONSTRAINT log_resident_pkey PRIMARY KEY (shipment_id, month);
ALTER TABLE ONLY statesvc.log_resident
    ADD CONSTRAINT log_resident_month_fkey FOREIGN KEY (month) REFERENCES statesvc.log_archive(month);

CREATE TABLE statesvc.mapped_text (
    carrier_id text NOT NULL,
    stand_in text NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE ONLY statesvc.mapped_text
    ADD CONSTRAINT mapped_text_pkey PRIMARY KEY (carrier_id, stand_in);

CREATE TABLE statesvc.message (
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone NOT NULL,
    attempts smallint NOT NULL,
    events integer NOT NULL,
    carrier_id text NOT NULL,
    outcome text NOT NULL,
    normalizer text NOT NULL,
    worker text NOT NULL,
    shipments uuid[] NOT NULL,
    sealed_key bytea,
    CONSTRAINT message_outcome_check CHECK ((outcome = ANY (ARRAY['applied'::text, 'empty'::text])))
)
PARTITION BY RANGE (received_at);
ALTER TABLE ONLY statesvc.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (message_id, received_at);

CREATE TABLE statesvc.message_alias (
    message_id uuid NOT NULL,
    kept_id uuid NOT NULL
);
ALTER TABLE ONLY statesvc.message_alias
    ADD CONSTRAINT message_alias_pkey PRIMARY KEY (message_id);

CREATE TABLE statesvc.message_attempt (
    attempt_id bigint NOT NULL,
    message_id uuid NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone NOT NULL,
    attempt smallint NOT NULL,
    carrier_id text NOT NULL,
    outcome text NOT NULL,
    worker text,
    error text,
    normalizer text,
    CONSTRAINT message_attempt_error_check CHECK ((length(error) <= 200)),
    CONSTRAINT message_attempt_outcome_check CHECK ((outcome = ANY (ARRAY['retried'::text, 'lease_ended'::text, 'buried'::text])))
);
ALTER TABLE statesvc.message_attempt ALTER COLUMN attempt_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.message_attempt_attempt_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.message_attempt
    ADD CONSTRAINT message_attempt_pkey PRIMARY KEY (attempt_id);
CREATE INDEX message_attempt_ended ON statesvc.message_attempt USING brin (ended_at) WITH (autosummarize='on');
CREATE INDEX message_attempt_message ON statesvc.message_attempt USING btree (message_id, attempt_id);
CREATE INDEX message_attempt_rescued ON statesvc.message_attempt USING btree (ended_at) WHERE (outcome = 'lease_ended'::text);

CREATE TABLE statesvc.normalized (
    message_id uuid NOT NULL,
    normalizer text NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE ONLY statesvc.normalized ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE ONLY statesvc.normalized
    ADD CONSTRAINT normalized_pkey PRIMARY KEY (message_id);
ALTER TABLE ONLY statesvc.normalized
    ADD CONSTRAINT normalized_message_id_fkey FOREIGN KEY (message_id) REFERENCES statesvc.inbox(message_id) ON DELETE CASCADE;

CREATE TABLE statesvc.notice (
    notice_id bigint NOT NULL,
    kind text NOT NULL,
    target text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    details jsonb NOT NULL,
    seen_at timestamp with time zone,
    seen_by text,
    sends smallint DEFAULT 0 NOT NULL,
    send_at timestamp with time zone,
    notified_at timestamp with time zone
);
ALTER TABLE statesvc.notice ALTER COLUMN notice_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.notice_notice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.notice
    ADD CONSTRAINT notice_pkey PRIMARY KEY (notice_id);
CREATE INDEX notice_due ON statesvc.notice USING btree (send_at) WHERE (send_at IS NOT NULL);
CREATE INDEX notice_unseen ON statesvc.notice USING btree (notice_id) WHERE (seen_at IS NULL);

CREATE TABLE statesvc.notification (
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    subscription_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL,
    carrier_id text NOT NULL,
    tracking_number text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    occurred_offset_seconds integer DEFAULT 0 NOT NULL,
    epoch integer,
    observed jsonb,
    CONSTRAINT notification_check CHECK (((observed IS NOT NULL) = (sequence < 0))),
    CONSTRAINT notification_epoch_check CHECK ((epoch > 1))
);
ALTER TABLE ONLY statesvc.notification
    ADD CONSTRAINT notification_pkey PRIMARY KEY (shipment_id, sequence, subscription_id);
ALTER TABLE statesvc.notification
    ADD CONSTRAINT notification_type_form CHECK ((type ~ '^(shipment|operator)\.[a-z_]+$'::text)) NOT VALID;
CREATE INDEX notification_subscription ON statesvc.notification USING btree (subscription_id, created_at);
CREATE INDEX notification_webhook_id ON statesvc.notification USING brin (webhook_id text_bloom_ops (n_distinct_per_range='2500', false_positive_rate='0.005')) WITH (pages_per_range='64');

CREATE TABLE statesvc.notification_gap (
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    subscription_id uuid NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    skipped integer NOT NULL,
    from_sequence integer NOT NULL,
    to_sequence integer NOT NULL,
    covers integer[] NOT NULL,
    CONSTRAINT notification_gap_check CHECK (((from_sequence <= to_sequence) AND (to_sequence < sequence))),
    CONSTRAINT notification_gap_covers_check CHECK ((cardinality(covers) > 0)),
    CONSTRAINT notification_gap_skipped_check CHECK ((skipped > 0))
);
ALTER TABLE ONLY statesvc.notification_gap
    ADD CONSTRAINT notification_gap_pkey PRIMARY KEY (shipment_id, sequence, subscription_id);

CREATE TABLE statesvc.objective_minute (
    minute timestamp with time zone NOT NULL,
    objective text NOT NULL,
    kept bigint NOT NULL,
    missed bigint NOT NULL,
    counts integer[] DEFAULT '{}'::integer[] NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY statesvc.objective_minute
    ADD CONSTRAINT objective_minute_pkey PRIMARY KEY (minute, objective);

CREATE TABLE statesvc.observation (
    shipment_id uuid NOT NULL,
    version integer NOT NULL,
    kind text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    since timestamp with time zone NOT NULL,
    batch_id bigint NOT NULL,
    ordinal integer NOT NULL,
    canonical bytea NOT NULL,
    CONSTRAINT observation_check CHECK ((since <= recorded_at)),
    CONSTRAINT observation_check1 CHECK (((version = 0) = (kind = 'never_heard'::text))),
    CONSTRAINT observation_kind_check CHECK ((kind = ANY (ARRAY['stalled'::text, 'not_picked_up'::text, 'overdue'::text, 'delivery_missed'::text, 'pickup_expiring'::text, 'never_heard'::text]))),
    CONSTRAINT observation_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT observation_version_check CHECK ((version >= 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.observation
    ADD CONSTRAINT observation_pkey PRIMARY KEY (shipment_id, version, kind, recorded_at);
CREATE INDEX observation_batch ON ONLY statesvc.observation USING btree (batch_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.observation FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.observation ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.open_attempt (
    subscription_id uuid NOT NULL,
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    number integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    duration_ms integer NOT NULL,
    outcome text NOT NULL,
    status_code integer,
    body_commitment bytea NOT NULL,
    worker text NOT NULL,
    sealed_part bytea,
    CONSTRAINT open_attempt_body_commitment_check CHECK ((octet_length(body_commitment) = 32)),
    CONSTRAINT open_attempt_duration_ms_check CHECK ((duration_ms >= 0)),
    CONSTRAINT open_attempt_number_check CHECK ((number > 0))
);
ALTER TABLE ONLY statesvc.open_attempt
    ADD CONSTRAINT open_attempt_pkey PRIMARY KEY (subscription_id, shipment_id, sequence, number);
CREATE INDEX open_attempt_recorded ON statesvc.open_attempt USING btree (subscription_id, recorded_at);

CREATE TABLE statesvc.operator_incident (
    type text NOT NULL,
    target text NOT NULL,
    since timestamp with time zone NOT NULL,
    incident_id uuid NOT NULL,
    subscriptions uuid[] NOT NULL
);
ALTER TABLE ONLY statesvc.operator_incident
    ADD CONSTRAINT operator_incident_pkey PRIMARY KEY (type, target);

CREATE TABLE statesvc.outbox (
    subscription_id uuid NOT NULL,
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    available_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    received_at timestamp with time zone,
    token uuid,
    attempts smallint DEFAULT 0 NOT NULL,
    earlier_attempts smallint DEFAULT 0 NOT NULL,
    worker text,
    traceparent text
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.1');
ALTER TABLE ONLY statesvc.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (subscription_id, shipment_id, sequence);
CREATE INDEX outbox_first ON statesvc.outbox USING btree (subscription_id, available_at, shipment_id, sequence) WHERE (attempts = 0);
CREATE INDEX outbox_retry ON statesvc.outbox USING btree (subscription_id, available_at, shipment_id, sequence) WHERE (attempts > 0);
CREATE INDEX outbox_token ON statesvc.outbox USING btree (token) WHERE (token IS NOT NULL);

CREATE TABLE statesvc.partitioned (
    table_name text NOT NULL,
    step text NOT NULL,
    steps_ahead integer NOT NULL,
    append_only boolean NOT NULL,
    CONSTRAINT partitioned_step_check CHECK ((step = ANY (ARRAY['month'::text, 'day'::text]))),
    CONSTRAINT partitioned_steps_ahead_check CHECK ((steps_ahead > 0))
);
ALTER TABLE ONLY statesvc.partitioned
    ADD CONSTRAINT partitioned_pkey PRIMARY KEY (table_name);

CREATE TABLE statesvc.personal_reading (
    actor text NOT NULL,
    target text NOT NULL,
    hour timestamp with time zone NOT NULL,
    further bigint DEFAULT 0 NOT NULL,
    CONSTRAINT personal_reading_further_check CHECK ((further >= 0))
);
ALTER TABLE ONLY statesvc.personal_reading
    ADD CONSTRAINT personal_reading_pkey PRIMARY KEY (actor, target, hour);
CREATE INDEX personal_reading_hour ON statesvc.personal_reading USING btree (hour);

CREATE TABLE statesvc.reader (
    normalizer text NOT NULL,
    carrier_id text NOT NULL,
    asked_at timestamp with time zone,
    tried_at timestamp with time zone,
    fallbacks bigint DEFAULT 0 NOT NULL,
    fallback_at timestamp with time zone
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.reader
    ADD CONSTRAINT reader_pkey PRIMARY KEY (carrier_id, normalizer);

CREATE TABLE statesvc.rebuild (
    projection text NOT NULL,
    swapped_at timestamp with time zone NOT NULL,
    swapped_by text NOT NULL,
    events bigint NOT NULL,
    CONSTRAINT rebuild_projection_check CHECK ((projection = 'shipment'::text))
);
ALTER TABLE ONLY statesvc.rebuild
    ADD CONSTRAINT rebuild_pkey PRIMARY KEY (projection);

CREATE TABLE statesvc.receipt (
    digest bytea NOT NULL,
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    retries integer DEFAULT 0 NOT NULL,
    retained_until timestamp with time zone,
    CONSTRAINT receipt_digest_check CHECK ((octet_length(digest) = 16))
)
WITH (fillfactor='80');
ALTER TABLE ONLY statesvc.receipt
    ADD CONSTRAINT receipt_pkey PRIMARY KEY (digest);
CREATE INDEX receipt_received ON statesvc.receipt USING brin (received_at) WITH (autosummarize='on');

CREATE TABLE statesvc.reconciled (
    promise text NOT NULL,
    begins bigint NOT NULL,
    ends bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    expected bigint NOT NULL,
    waiting bigint NOT NULL,
    missing bigint NOT NULL,
    check_at timestamp with time zone,
    CONSTRAINT reconciled_check CHECK ((ends > begins)),
    CONSTRAINT reconciled_promise_check CHECK ((promise = ANY (ARRAY['settled'::text, 'notified'::text])))
);
ALTER TABLE ONLY statesvc.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (promise, begins);
CREATE INDEX reconciled_missing ON statesvc.reconciled USING btree (promise) WHERE (missing > 0);
CREATE INDEX reconciled_open ON statesvc.reconciled USING btree (check_at) WHERE (check_at IS NOT NULL);

CREATE TABLE statesvc.rollout (
    carrier_id text NOT NULL,
    stable text,
    candidate text,
    percent smallint DEFAULT 0 NOT NULL,
    shadow boolean DEFAULT false NOT NULL,
    fallback_seconds integer DEFAULT 30 NOT NULL,
    hold boolean DEFAULT false NOT NULL,
    turned_at timestamp with time zone,
    guard_messages integer,
    guard_errors_percent double precision,
    guard_differences_percent double precision,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    why text DEFAULT ''::text NOT NULL,
    CONSTRAINT rollout_check CHECK (((candidate IS NOT NULL) OR ((percent = 0) AND (NOT shadow)))),
    CONSTRAINT rollout_check1 CHECK ((candidate <> stable)),
    CONSTRAINT rollout_check2 CHECK (((guard_messages IS NOT NULL) OR ((guard_errors_percent IS NULL) AND (guard_differences_percent IS NULL)))),
    CONSTRAINT rollout_fallback_seconds_check CHECK ((fallback_seconds > 0)),
    CONSTRAINT rollout_guard_differences_percent_check CHECK (((guard_differences_percent >= (0)::double precision) AND (guard_differences_percent <= (100)::double precision))),
    CONSTRAINT rollout_guard_errors_percent_check CHECK (((guard_errors_percent >= (0)::double precision) AND (guard_errors_percent <= (100)::double precision))),
    CONSTRAINT rollout_guard_messages_check CHECK ((guard_messages > 0)),
    CONSTRAINT rollout_percent_check CHECK (((percent >= 0) AND (percent <= 100))),
    CONSTRAINT rollout_stable_check CHECK ((strpos(stable, '@'::text) > 1))
);
ALTER TABLE ONLY statesvc.rollout
    ADD CONSTRAINT rollout_pkey PRIMARY KEY (carrier_id);

CREATE TABLE statesvc.rollout_batch (
    rollout_batch_id bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    messages integer NOT NULL,
    errors integer NOT NULL,
    differing integer NOT NULL
);
ALTER TABLE statesvc.rollout_batch ALTER COLUMN rollout_batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.rollout_batch_rollout_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.rollout_batch
    ADD CONSTRAINT rollout_batch_pkey PRIMARY KEY (carrier_id, rollout_batch_id);

CREATE TABLE statesvc.rollout_count (
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    measure text NOT NULL,
    worker text NOT NULL,
    count bigint NOT NULL
);
ALTER TABLE ONLY statesvc.rollout_count
    ADD CONSTRAINT rollout_count_pkey PRIMARY KEY (carrier_id, candidate, measure, worker);

CREATE TABLE statesvc.rollout_diff (
    diff_id bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    message_id uuid NOT NULL,
    carrier_id text NOT NULL,
    stable text NOT NULL,
    candidate text NOT NULL,
    event_id text,
    field text NOT NULL,
    stable_value text,
    candidate_value text
);
ALTER TABLE statesvc.rollout_diff ALTER COLUMN diff_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.rollout_diff_diff_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.rollout_diff
    ADD CONSTRAINT rollout_diff_pkey PRIMARY KEY (carrier_id, diff_id);

CREATE TABLE statesvc.root_key (
    kms text NOT NULL,
    key_id bytea NOT NULL,
    wrapped bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    wrapped_at timestamp with time zone NOT NULL,
    CONSTRAINT root_key_key_id_check CHECK ((octet_length(key_id) = 8))
);
ALTER TABLE ONLY statesvc.root_key
    ADD CONSTRAINT root_key_pkey PRIMARY KEY (kms);

CREATE TABLE statesvc.schema_functions (
    file text NOT NULL,
    sha256 text NOT NULL,
    functions text[] NOT NULL,
    applied_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY statesvc.schema_functions
    ADD CONSTRAINT schema_functions_pkey PRIMARY KEY (file);

CREATE TABLE statesvc.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    duration_ms integer NOT NULL
);
ALTER TABLE ONLY statesvc.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

CREATE TABLE statesvc.sealed_batch (
    first_index bigint NOT NULL,
    batch_id bigint NOT NULL,
    recorded_from timestamp with time zone NOT NULL,
    recorded_to timestamp with time zone NOT NULL,
    entries integer NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    CONSTRAINT sealed_batch_entries_check CHECK ((entries > 0)),
    CONSTRAINT sealed_batch_first_index_check CHECK ((first_index >= 0))
);
ALTER TABLE ONLY statesvc.sealed_batch
    ADD CONSTRAINT sealed_batch_pkey PRIMARY KEY (first_index);
CREATE UNIQUE INDEX sealed_batch_place ON statesvc.sealed_batch USING btree (batch_id) INCLUDE (first_index, sealed_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.sealed_batch FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.sealed_batch ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.sealing_refusal (
    one_row boolean DEFAULT true NOT NULL,
    why text NOT NULL,
    since timestamp with time zone NOT NULL,
    CONSTRAINT sealing_refusal_one_row_check CHECK (one_row)
);
ALTER TABLE ONLY statesvc.sealing_refusal
    ADD CONSTRAINT sealing_refusal_pkey PRIMARY KEY (one_row);

CREATE TABLE statesvc.second_signature (
    one_row boolean DEFAULT true NOT NULL,
    tree_size bigint NOT NULL,
    line text NOT NULL,
    CONSTRAINT second_signature_one_row_check CHECK (one_row)
);
ALTER TABLE ONLY statesvc.second_signature
    ADD CONSTRAINT second_signature_pkey PRIMARY KEY (one_row);

CREATE TABLE statesvc.service_key (
    name text NOT NULL,
    sealed_key bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT service_key_name_check CHECK ((name = ANY (ARRAY['digest'::text, 'inbox'::text])))
);
ALTER TABLE ONLY statesvc.service_key
    ADD CONSTRAINT service_key_pkey PRIMARY KEY (name);

CREATE TABLE statesvc.shipment (
    shipment_id uuid NOT NULL,
    version integer NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    first_recorded_at timestamp with time zone NOT NULL,
    last_event_at timestamp with time zone NOT NULL,
    status_since timestamp with time zone,
    delivered_at timestamp with time zone,
    attempts integer NOT NULL,
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
    promised_until timestamp with time zone,
    lane text,
    service text,
    due_at timestamp with time zone,
    state bytea NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY statesvc.shipment
    ADD CONSTRAINT shipment_pkey PRIMARY KEY (shipment_id);
CREATE INDEX shipment_due ON statesvc.shipment USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX shipment_number ON statesvc.shipment USING btree (number text_pattern_ops, carrier_id);
CREATE INDEX shipment_updated ON statesvc.shipment USING btree (terminal, recorded_at, shipment_id);

CREATE TABLE statesvc.shipment_references (
    carrier_id text NOT NULL,
    number text NOT NULL,
    sealed bytea,
    digests bytea[] NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    erased_at timestamp with time zone,
    CONSTRAINT shipment_references_check CHECK (((sealed IS NOT NULL) OR (digests = '{}'::bytea[]))),
    CONSTRAINT shipment_references_check1 CHECK (((sealed IS NULL) OR (erased_at IS NULL)))
);
ALTER TABLE ONLY statesvc.shipment_references
    ADD CONSTRAINT shipment_references_pkey PRIMARY KEY (number, carrier_id);
CREATE INDEX shipment_references_digest ON statesvc.shipment_references USING gin (digests);

CREATE TABLE statesvc.shipment_spare (
    shipment_id uuid CONSTRAINT shipment_shipment_id_not_null NOT NULL,
    version integer CONSTRAINT shipment_version_not_null NOT NULL,
    recorded_at timestamp with time zone CONSTRAINT shipment_recorded_at_not_null NOT NULL,
    first_recorded_at timestamp with time zone CONSTRAINT shipment_first_recorded_at_not_null NOT NULL,
    last_event_at timestamp with time zone CONSTRAINT shipment_last_event_at_not_null NOT NULL,
    status_since timestamp with time zone,
    delivered_at timestamp with time zone,
    attempts integer CONSTRAINT shipment_attempts_not_null NOT NULL,
    terminal boolean CONSTRAINT shipment_terminal_not_null NOT NULL,
    carrier_id text CONSTRAINT shipment_carrier_id_not_null NOT NULL,
    number text CONSTRAINT shipment_number_not_null NOT NULL,
    tracking_number text CONSTRAINT shipment_tracking_number_not_null NOT NULL,
    discriminator text CONSTRAINT shipment_discriminator_not_null NOT NULL,
    status text CONSTRAINT shipment_status_not_null NOT NULL,
    reason text,
    flags text[] CONSTRAINT shipment_flags_not_null NOT NULL,
    estimated_delivery text,
    signed_by_event_id text,
    promised_until timestamp with time zone,
    lane text,
    service text,
    due_at timestamp with time zone,
    state bytea CONSTRAINT shipment_state_not_null NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY statesvc.shipment_spare
    ADD CONSTRAINT shipment_spare_pkey PRIMARY KEY (shipment_id);
CREATE INDEX shipment_spare_due_at_idx ON statesvc.shipment_spare USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX shipment_spare_number_carrier_id_idx ON statesvc.shipment_spare USING btree (number text_pattern_ops, carrier_id);
CREATE INDEX shipment_spare_terminal_recorded_at_shipment_id_idx ON statesvc.shipment_spare USING btree (terminal, recorded_at, shipment_id);

CREATE TABLE statesvc.shipment_touched (
    shipment_id uuid NOT NULL
);
ALTER TABLE ONLY statesvc.shipment_touched REPLICA IDENTITY FULL;

CREATE TABLE statesvc.signing_key (
    key_id bytea NOT NULL,
    origin text NOT NULL,
    public_key bytea NOT NULL,
    sealed_seed bytea,
    created_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    cosigner bytea,
    CONSTRAINT signing_key_check CHECK (((sealed_seed IS NULL) = (retired_at IS NOT NULL))),
    CONSTRAINT signing_key_cosigner_size CHECK ((octet_length(cosigner) = 1312)),
    CONSTRAINT signing_key_key_id_check CHECK ((octet_length(key_id) = 4)),
    CONSTRAINT signing_key_public_key_check CHECK ((octet_length(public_key) = 32))
);
ALTER TABLE ONLY statesvc.signing_key
    ADD CONSTRAINT signing_key_pkey PRIMARY KEY (key_id);

CREATE TABLE statesvc.spool (
    name text NOT NULL,
    place bigint DEFAULT 0 NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    set_aside bigint DEFAULT 0 NOT NULL,
    oldest_at timestamp with time zone,
    clear_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    held_seconds double precision NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.spool
    ADD CONSTRAINT spool_pkey PRIMARY KEY (name);

CREATE TABLE statesvc.stream (
    shipment_id uuid NOT NULL,
    carrier_id text NOT NULL,
    number text NOT NULL,
    discriminator text NOT NULL,
    version integer NOT NULL,
    head_hash bytea NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    first_recorded_at timestamp with time zone NOT NULL,
    sealed_key bytea,
    erased_at timestamp with time zone,
    named_at timestamp with time zone,
    entries_until timestamp with time zone,
    packed_keys bytea,
    packed_values bytea,
    parcel_id uuid,
    CONSTRAINT stream_check CHECK (((sealed_key IS NULL) = (erased_at IS NOT NULL))),
    CONSTRAINT stream_head_hash_check CHECK ((octet_length(head_hash) = 32)),
    CONSTRAINT stream_packed_keys_check CHECK (((octet_length(packed_keys) % 8) = 0)),
    CONSTRAINT stream_packed_values_check CHECK (((octet_length(packed_values) % 8) = 0)),
    CONSTRAINT stream_version_check CHECK ((version >= 0))
)
WITH (fillfactor='70');
ALTER TABLE ONLY statesvc.stream
    ADD CONSTRAINT stream_pkey PRIMARY KEY (shipment_id);
CREATE INDEX stream_named ON statesvc.stream USING btree (named_at) WHERE (named_at IS NOT NULL);
CREATE INDEX stream_number ON statesvc.stream USING btree (carrier_id, number);
CREATE INDEX stream_number_end ON statesvc.stream USING btree (reverse("right"(number, 15)) text_pattern_ops);
CREATE INDEX stream_parcel ON statesvc.stream USING btree (parcel_id) WHERE (parcel_id IS NOT NULL);

CREATE TABLE statesvc.subscription (
    subscription_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    owner text NOT NULL,
    name text,
    description text,
    url text NOT NULL,
    sealed_login bytea,
    sealed_headers bytea,
    header_names text[] DEFAULT '{}'::text[] NOT NULL,
    sealed_secrets bytea[] NOT NULL,
    signature text DEFAULT 'hmac'::text NOT NULL,
    second_signature jsonb,
    carriers text[],
    statuses text[],
    types text[],
    shipments text[],
    parcels text DEFAULT 'all'::text NOT NULL,
    payload text DEFAULT 'thin'::text NOT NULL,
    pii boolean DEFAULT false NOT NULL,
    rate_per_second double precision,
    coalesces boolean DEFAULT true NOT NULL,
    give_up_after jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    disabled_at timestamp with time zone,
    disabled_why text,
    missed_since timestamp with time zone,
    deleted_at timestamp with time zone,
    max_age_seconds double precision,
    CONSTRAINT subscription_parcels_check CHECK ((parcels = ANY (ARRAY['all'::text, 'once'::text]))),
    CONSTRAINT subscription_payload_check CHECK ((payload = ANY (ARRAY['thin'::text, 'full'::text]))),
    CONSTRAINT subscription_rate_per_second_check CHECK ((rate_per_second > (0)::double precision)),
    CONSTRAINT subscription_signature_check CHECK ((signature = ANY (ARRAY['hmac'::text, 'ed25519'::text])))
);
ALTER TABLE ONLY statesvc.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (subscription_id);
CREATE INDEX subscription_owner ON statesvc.subscription USING btree (owner) WHERE (deleted_at IS NULL);

CREATE TABLE statesvc.subscription_failing (
    subscription_id uuid NOT NULL,
    since timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    failures integer NOT NULL,
    last_outcome text NOT NULL,
    last_status_code integer,
    warned_at timestamp with time zone,
    CONSTRAINT subscription_failing_failures_check CHECK ((failures > 0))
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.subscription_failing
    ADD CONSTRAINT subscription_failing_pkey PRIMARY KEY (subscription_id);

CREATE TABLE statesvc.subtree (
    level smallint NOT NULL,
    "position" bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT subtree_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT subtree_level_check CHECK (((level > 0) AND (((level)::integer % 8) = 0))),
    CONSTRAINT subtree_position_check CHECK (("position" >= 0))
);
ALTER TABLE ONLY statesvc.subtree
    ADD CONSTRAINT subtree_pkey PRIMARY KEY (level, "position") INCLUDE (hash);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.subtree FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.subtree ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.test_attempt (
    subscription_id uuid NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL,
    carrier_id text,
    tracking_number text,
    sequence integer,
    started_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    duration_ms integer NOT NULL,
    outcome text NOT NULL,
    status_code integer,
    CONSTRAINT test_attempt_duration_ms_check CHECK ((duration_ms >= 0))
);
ALTER TABLE ONLY statesvc.test_attempt
    ADD CONSTRAINT test_attempt_pkey PRIMARY KEY (subscription_id, webhook_id);

CREATE TABLE statesvc.throttle (
    subscription_id uuid NOT NULL,
    spent_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    not_before timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.throttle
    ADD CONSTRAINT throttle_pkey PRIMARY KEY (subscription_id);

CREATE TABLE statesvc.transition (
    shipment_id uuid NOT NULL,
    sequence integer NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    batch_id bigint NOT NULL,
    ordinal integer NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    canonical bytea NOT NULL,
    CONSTRAINT transition_check CHECK ((to_status <> from_status)),
    CONSTRAINT transition_ordinal_check CHECK ((ordinal >= 0)),
    CONSTRAINT transition_sequence_check CHECK ((sequence > 0))
)
PARTITION BY RANGE (recorded_at);
ALTER TABLE ONLY statesvc.transition
    ADD CONSTRAINT transition_pkey PRIMARY KEY (shipment_id, sequence, recorded_at);
CREATE INDEX transition_batch ON ONLY statesvc.transition USING btree (batch_id);
CREATE INDEX transition_recorded ON ONLY statesvc.transition USING btree (recorded_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statesvc.transition FOR EACH STATEMENT EXECUTE FUNCTION statesvc.refuse_change();
ALTER TABLE statesvc.transition ENABLE ALWAYS TRIGGER append_only;

CREATE TABLE statesvc.trial (
    trial_id bigint NOT NULL,
    message_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    token uuid,
    attempts smallint DEFAULT 0 NOT NULL,
    body_bytes integer NOT NULL,
    carrier_id text NOT NULL,
    candidate text NOT NULL,
    stable text,
    stable_sealed bytea,
    shipments uuid[] NOT NULL,
    sealed_key bytea NOT NULL,
    verdict text,
    sealed bytea,
    CONSTRAINT trial_check CHECK (((NOT (verdict IS DISTINCT FROM 'read'::text)) = (sealed IS NOT NULL))),
    CONSTRAINT trial_verdict_check CHECK ((verdict = ANY (ARRAY['read'::text, 'declined'::text])))
);
ALTER TABLE ONLY statesvc.trial ALTER COLUMN stable_sealed SET STORAGE EXTERNAL;
ALTER TABLE ONLY statesvc.trial ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE statesvc.trial ALTER COLUMN trial_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statesvc.trial_trial_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY statesvc.trial
    ADD CONSTRAINT trial_pkey PRIMARY KEY (trial_id);
CREATE INDEX trial_carrier ON statesvc.trial USING btree (carrier_id, trial_id);
CREATE INDEX trial_compared ON statesvc.trial USING btree (trial_id) WHERE (verdict IS NOT NULL);
CREATE INDEX trial_token ON statesvc.trial USING btree (token) WHERE (token IS NOT NULL);
CREATE INDEX trial_waiting ON statesvc.trial USING btree (candidate, trial_id) WHERE (verdict IS NULL);

CREATE TABLE statesvc.unsealed (
    batch_id bigint NOT NULL,
    recorded_from timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY statesvc.unsealed
    ADD CONSTRAINT unsealed_pkey PRIMARY KEY (batch_id);

CREATE TABLE statesvc.worker (
    worker_id text NOT NULL,
    role text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    normalizers text[] DEFAULT '{}'::text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    stopping_at timestamp with time zone,
    beat_seconds real DEFAULT 10 NOT NULL,
    ingest jsonb,
    zones text,
    addons text[]
)
WITH (fillfactor='50');
ALTER TABLE ONLY statesvc.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (worker_id);

CREATE TABLE statesvc.zone_release (
    zones text NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY statesvc.zone_release
    ADD CONSTRAINT zone_release_pkey PRIMARY KEY (zones);
