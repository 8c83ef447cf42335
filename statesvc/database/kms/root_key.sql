-- name: read
-- Return the root key that this key of a KMS wraps.
SELECT key_id, wrapped FROM statesvc.root_key WHERE kms = %(kms)s;

-- name: insert
-- Keep a new root key, unless another process was first.
INSERT INTO statesvc.root_key (kms, key_id, wrapped, created_at, wrapped_at)
VALUES (%(kms)s, %(key_id)b, %(wrapped)b, statesvc.clock(), statesvc.clock())
ON CONFLICT (kms) DO NOTHING;
