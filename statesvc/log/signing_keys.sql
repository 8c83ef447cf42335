-- name: insert
-- Keep a new key.
INSERT INTO statesvc.signing_key (key_id, origin, public_key, cosigner, sealed_seed, created_at)
VALUES (%(key_id)s, %(origin)s, %(public_key)s, %(cosigner)s, %(sealed_seed)s, statesvc.clock());

-- name: add_cosigner
-- Keep the ML-DSA-44 half of a key that an older release made.
UPDATE statesvc.signing_key SET cosigner = %(cosigner)s WHERE key_id = %(key_id)s AND cosigner IS NULL;

-- name: retire
-- End a key and destroy its secret half.
UPDATE statesvc.signing_key SET sealed_seed = NULL, retired_at = statesvc.clock() WHERE key_id = %(key_id)s;

-- name: rewrap
-- Wrap the same secret under the current master key, unless the key was retired meanwhile.
UPDATE statesvc.signing_key SET sealed_seed = %(new)s WHERE key_id = %(key_id)s AND sealed_seed = %(old)s;

-- name: unannounced
-- Return one of these announcements that no checkpoint covers yet.
SELECT a.target FROM statesvc.action a LEFT JOIN statesvc.sealed_batch s ON s.batch_id = a.batch_id
WHERE a.verb = %(verb)s AND a.target = ANY (%(targets)s)
    AND NOT EXISTS (SELECT FROM statesvc.checkpoint c WHERE c.tree_size > s.first_index + a.ordinal)
LIMIT 1;
