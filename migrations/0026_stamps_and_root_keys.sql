-- What others vouch for, and what others keep: time stamps of the log's heads by an authority outside, and keys that a KMS holds the key of.

-- RFC 3161 time stamps: an authority says that it saw the very note of this checkpoint at this time. `token` is its whole answer (DER), as
-- `openssl ts -verify -in` takes it. At most one an interval: a stamped head vouches for every entry below it.
CREATE TABLE statesvc.checkpoint_stamp (
    tree_size bigint NOT NULL CHECK (tree_size > 0),
    stamped_at timestamptz NOT NULL,
    authority text NOT NULL,
    token bytea NOT NULL CHECK (octet_length(token) BETWEEN 1 AND 65536),
    received_at timestamptz NOT NULL,
    PRIMARY KEY (tree_size, stamped_at)
);
SELECT statesvc.make_append_only('statesvc.checkpoint_stamp');

-- Where a KMS holds the master key, it never leaves it: what seals here is a root key of our own, which the KMS wrapped once and unwraps
-- when a process starts. `kms` names the key in the KMS, without credentials; `key_id` is that of the root key in what it has sealed.
CREATE TABLE statesvc.root_key (
    kms text PRIMARY KEY,
    key_id bytea NOT NULL CHECK (octet_length(key_id) = 8),
    wrapped bytea NOT NULL,
    created_at timestamptz NOT NULL,
    wrapped_at timestamptz NOT NULL
);
