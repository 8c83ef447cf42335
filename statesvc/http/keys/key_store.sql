-- name: find
-- Return a key that is still good, by its public id; and whether its last use is to be noted anew.
SELECT name, key_hash, scopes, owner, coalesce(last_used_at < statesvc.clock() - make_interval(secs => %(noted_seconds)s), true)
FROM statesvc.api_key
WHERE key_id = %(key_id)s AND revoked_at IS NULL AND coalesce(expires_at > statesvc.clock(), true);

-- name: push_keys
-- Return the keys that may push and are still good.
SELECT k.key_id, k.name, k.owner, encode(k.key_hash, 'hex') AS key_hash, k.scopes, k.expires_at FROM statesvc.api_key k
WHERE k.revoked_at IS NULL AND coalesce(k.expires_at > statesvc.clock(), true) AND k.scopes && '{ingest,admin}'
ORDER BY k.key_id;

-- name: note_use
-- Note that a key was used now.
UPDATE statesvc.api_key SET last_used_at = statesvc.clock() WHERE key_id = %(key_id)s;

-- name: clock
-- Return the database's time.
SELECT statesvc.clock();

-- name: create
-- Store the hash of a new key.
INSERT INTO statesvc.api_key (key_id, name, owner, key_hash, scopes, created_at, created_by, expires_at)
VALUES (%(key_id)s, %(name)s, %(owner)s, %(key_hash)s, %(scopes)s::text[], statesvc.clock(), %(created_by)s, %(expires_at)s);

-- name: list_all
-- Return all keys, the newest first.
SELECT key_id, name, owner, scopes, created_at, created_by, expires_at, last_used_at, revoked_at FROM statesvc.api_key
ORDER BY created_at DESC, key_id;

-- name: owners_called
-- Return the owners of the live keys of this name; none where it is an owner itself.
SELECT DISTINCT k.owner FROM statesvc.api_key k
WHERE k.name = %(called)s AND k.revoked_at IS NULL AND coalesce(k.expires_at > statesvc.clock(), true)
    AND NOT EXISTS (SELECT FROM statesvc.api_key o WHERE o.owner = %(called)s)
    AND NOT EXISTS (SELECT FROM statesvc.subscription s WHERE s.owner = %(called)s)
ORDER BY 1;
