-- name: spools
-- Return the spools: what waits in each, for how long, how much the database refused, and when it was last heard of.
SELECT s.name, s.messages, s.bytes, extract(epoch FROM statesvc.clock() - s.oldest_at)::float8, s.set_aside,
    extract(epoch FROM statesvc.clock() - s.seen_at)::float8
FROM statesvc.spool s ORDER BY s.name;
