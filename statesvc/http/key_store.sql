-- name: find
-- A key that is still good, by its public id.
SELECT name, key_hash, scopes, owner FROM statesvc.api_key WHERE key_id = %(key_id)s AND revoked_at IS NULL;

-- name: create
-- Stores the hash of a new key.
INSERT INTO statesvc.api_key (key_id, name, owner, key_hash, scopes, created_at, created_by)
VALUES (%(key_id)s, %(name)s, %(owner)s, %(key_hash)s, %(scopes)s::text[], statesvc.clock(), %(created_by)s);

-- name: list_all
-- All keys, the newest first.
SELECT key_id, name, scopes, created_at, created_by, revoked_at, owner FROM statesvc.api_key ORDER BY created_at DESC, key_id;

-- name: read_all
-- All keys as another cell stores them.
SELECT key_id, name, owner, key_hash, scopes, created_at, created_by, revoked_at IS NOT NULL FROM statesvc.api_key ORDER BY key_id;

-- name: copy
-- Stores a key of another cell, unless it is here.
INSERT INTO statesvc.api_key (key_id, name, owner, key_hash, scopes, created_at, created_by)
VALUES (%(key_id)s, %(name)s, %(owner)s, %(key_hash)s, %(scopes)s::text[], %(created_at)s, %(created_by)s)
ON CONFLICT (key_id) DO NOTHING RETURNING true;
