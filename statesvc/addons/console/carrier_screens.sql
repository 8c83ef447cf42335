-- name: hours
-- Return what each carrier pushed in each hour of a day: new, repeated, refused; and when it was last heard.
SELECT t.carrier_id, date_trunc('hour', t.minute) AS hour, sum(t.accepted)::bigint, sum(t.duplicates)::bigint, sum(t.refused)::bigint, max(t.last_at)
FROM statesvc.ack_count t
WHERE t.minute > date_trunc('hour', statesvc.clock()) - interval '23 hours' AND (%(carrier_id)s::text IS NULL OR t.carrier_id = %(carrier_id)s)
GROUP BY t.carrier_id, date_trunc('hour', t.minute);

-- name: open_dead_letters
-- Return how many dead letters of each carrier wait, as far as `count_max`: unknown codes, and all else.
SELECT d.carrier_id, count(*) FILTER (WHERE d.kind = 'code'), count(*) FILTER (WHERE d.kind <> 'code')
FROM (SELECT d.carrier_id, d.kind FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL LIMIT %(count_max)s) d
GROUP BY d.carrier_id;

-- name: now
-- Return the time by the database's clock.
SELECT statesvc.clock();
