-- name: stamp_status
-- Return the newest head, and the newest one that was stamped with the time of that; NULL: none was.
SELECT h.tree_size, h.note, s.tree_size, s.stamped_note, extract(epoch FROM statesvc.clock() - s.received_at)::float8
FROM (SELECT c.tree_size, c.note FROM statesvc.checkpoint c ORDER BY c.tree_size DESC LIMIT 1) h
LEFT JOIN LATERAL (
    SELECT p.tree_size, p.received_at, c.note AS stamped_note
    FROM statesvc.checkpoint_stamp p LEFT JOIN statesvc.checkpoint c USING (tree_size)
    ORDER BY p.tree_size DESC, p.stamped_at DESC LIMIT 1
) s ON true;

-- name: store_stamp
-- Keep a stamp.
INSERT INTO statesvc.checkpoint_stamp (tree_size, stamped_at, authority, token, received_at)
VALUES (%(tree_size)s, %(stamped_at)s, %(authority)s, %(token)b, statesvc.clock())
ON CONFLICT (tree_size, stamped_at) DO NOTHING;

-- name: vouching
-- Return the first stamped head that covers all entries up to this one; where none does yet, the newest that covers some.
SELECT p.tree_size, p.stamped_at, p.authority, p.token, c.note
FROM statesvc.checkpoint_stamp p JOIN statesvc.checkpoint c USING (tree_size)
WHERE p.tree_size <= %(size)s
ORDER BY p.tree_size > %(last)s DESC, CASE WHEN p.tree_size > %(last)s THEN p.tree_size ELSE - p.tree_size END, p.stamped_at LIMIT 1;

-- name: all
-- Return all stamps with what they are of.
SELECT p.tree_size, p.stamped_at, p.authority, p.token, c.note, c.created_at
FROM statesvc.checkpoint_stamp p LEFT JOIN statesvc.checkpoint c USING (tree_size) ORDER BY p.tree_size, p.stamped_at;
