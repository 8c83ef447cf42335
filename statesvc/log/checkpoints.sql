-- name: latest
-- Return the newest signed head.
SELECT c.tree_size, c.root, c.note, c.created_at, coalesce(s.line, w.second_signature) AS second_signature, w.cosignatures
FROM statesvc.checkpoint c LEFT JOIN statesvc.second_signature s USING (tree_size) LEFT JOIN statesvc.cosigned_head w USING (tree_size)
ORDER BY c.tree_size DESC LIMIT 1;

-- name: covering
-- Return the first signed head that covers this number of entries.
SELECT c.tree_size, c.root, c.note, c.created_at, coalesce(s.line, w.second_signature) AS second_signature, w.cosignatures
FROM statesvc.checkpoint c LEFT JOIN statesvc.second_signature s USING (tree_size) LEFT JOIN statesvc.cosigned_head w USING (tree_size)
WHERE c.tree_size >= %(size)s ORDER BY c.tree_size LIMIT 1;

-- name: cosigned
-- Return the newest head that a quorum of witnesses cosigned.
SELECT c.tree_size, c.root, c.note, c.created_at, w.second_signature, w.cosignatures
FROM statesvc.cosigned_head w JOIN statesvc.checkpoint c USING (tree_size);

-- name: signing_keys
-- Return all keys that ever signed, the first one first.
SELECT origin, public_key, cosigner, sealed_seed, created_at, retired_at FROM statesvc.signing_key ORDER BY created_at, key_id;

-- name: epochs
-- Return all epochs of the log, and where they begin.
SELECT epoch, begins FROM statesvc.log_epoch ORDER BY epoch;
