-- name: read_keys
-- Return the service's two keys under the master key.
SELECT name, sealed_key FROM statesvc.service_key;

-- name: insert_key
-- Keep a new key, unless another process was first.
INSERT INTO statesvc.service_key (name, sealed_key, created_at) VALUES (%(name)s, %(sealed_key)b, statesvc.clock())
ON CONFLICT (name) DO NOTHING;
