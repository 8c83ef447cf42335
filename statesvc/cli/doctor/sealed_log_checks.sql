-- name: standing
-- What the newest checkpoint covers, and how long the oldest batch has been waiting for its place.
SELECT coalesce((SELECT max(c.tree_size) FROM statesvc.checkpoint c), 0),
    (SELECT extract(epoch FROM statesvc.clock() - min(u.recorded_at))::float8 FROM statesvc.unsealed u);
