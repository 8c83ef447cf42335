-- name: hours
-- Return how many dead letters of each group came in each of the last 24 hours (0: the last one) and still wait; looks at the newest
-- `count_max`.
SELECT d.kind, d.carrier_id, d.cause, floor(extract(epoch FROM statesvc.clock() - d.created_at) / 3600)::int AS hour, count(*)
FROM (
    SELECT d.kind, d.carrier_id, d.cause, d.created_at FROM statesvc.dead_letter d
    WHERE d.resolved_at IS NULL ORDER BY d.dead_letter_id DESC LIMIT %(count_max)s
) d
WHERE d.created_at > statesvc.clock() - interval '24 hours'
GROUP BY 1, 2, 3, 4;
