-- name: latest
-- Return the newest signed head.
SELECT tree_size, root, note, created_at FROM statesvc.checkpoint ORDER BY tree_size DESC LIMIT 1;

-- name: covering
-- Return the first signed head that covers this number of entries.
SELECT tree_size, root, note, created_at FROM statesvc.checkpoint WHERE tree_size >= %(size)s ORDER BY tree_size LIMIT 1;

-- name: signing_keys
-- Return all keys that ever signed, the first one first.
SELECT origin, public_key, sealed_seed, created_at, retired_at FROM statesvc.signing_key ORDER BY created_at, key_id;
