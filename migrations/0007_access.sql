-- API keys. The key itself is never stored: `key_hash` is SHA-256 of it (it carries 256 bits of chance).
CREATE TABLE statesvc.api_key (
    key_id text PRIMARY KEY,
    name text NOT NULL,
    key_hash bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    revoked_at timestamptz
);
