-- Who may call the API, and the keys that everything sealed depends on.

-- API keys. The key itself is never stored: `key_hash` is its SHA-256 (it carries 256 random bits). `owner`: whose subscriptions it
-- manages; several keys may have one owner, so that a key can be rotated. `last_used_at` is written once in some minutes. An expired key
-- opens nothing any more, and is revoked by the maintenance.
CREATE TABLE statesvc.api_key (
    key_id text PRIMARY KEY,
    name text NOT NULL,
    owner text NOT NULL CHECK (owner ~ '^[!-~]{1,100}$'),
    key_hash bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    revoked_at timestamptz,
    expires_at timestamptz,
    last_used_at timestamptz
);
CREATE INDEX api_key_owner ON statesvc.api_key (owner);

-- Sessions of the console. Neither the token nor the key behind it can be read from here; `key_hash` ends the session when the key is
-- another one. `may_change` false: it only reads. A login takes expired ones away.
CREATE TABLE statesvc.console_session (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    key_id text NOT NULL,
    key_hash bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    may_change boolean NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at)
);
CREATE INDEX console_session_key ON statesvc.console_session (key_id, created_at);

-- The digest key and the inbox key under the master key. The digest key is made once and never changes: every keyed digest in the log
-- depends on it.
CREATE TABLE statesvc.service_key (
    name text PRIMARY KEY CHECK (name IN ('digest', 'inbox')),
    sealed_key bytea NOT NULL,
    created_at timestamptz NOT NULL
);

-- A master key that a KMS holds never leaves it: what seals here is a root key of our own, which the KMS wrapped once and unwraps when
-- a process starts. `kms` names the key in the KMS, without credentials; `key_id` is the root key's in what it has sealed.
CREATE TABLE statesvc.root_key (
    kms text PRIMARY KEY,
    key_id bytea NOT NULL CHECK (octet_length(key_id) = 8),
    wrapped bytea NOT NULL,
    created_at timestamptz NOT NULL,
    wrapped_at timestamptz NOT NULL
);

-- Which key (`actor`) read whose personal fields in which hour. The first reading of an hour is an entry of the log before it is
-- answered, written with this row; the others are counted in `further`, by and by, and become one entry when the hour is over, which
-- takes the row away.
CREATE TABLE statesvc.personal_reading (
    actor text NOT NULL,
    target text NOT NULL,
    hour timestamptz NOT NULL,
    further bigint NOT NULL DEFAULT 0 CHECK (further >= 0),
    PRIMARY KEY (actor, target, hour)
);
CREATE INDEX personal_reading_hour ON statesvc.personal_reading (hour);

-- Every table of the baseline; partitions get it when they are made.
SELECT statesvc.sample_little(c.oid) FROM pg_class c
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition;
