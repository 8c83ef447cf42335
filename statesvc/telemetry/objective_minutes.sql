-- name: add
-- Add what a process counted to the rows of its minutes, and forget what is older than a week and a day.
WITH forgotten AS (
    DELETE FROM statesvc.objective_minute o WHERE o.minute < (SELECT statesvc.clock() - interval '8 days')
)
INSERT INTO statesvc.objective_minute AS o (minute, objective, kept, missed, counts)
SELECT r.minute, r.objective, r.kept, r.missed, r.counts
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(minute timestamptz, objective text, kept bigint, missed bigint, counts int[])
ON CONFLICT (minute, objective) DO UPDATE SET
    kept = o.kept + excluded.kept, missed = o.missed + excluded.missed,
    counts = ARRAY(
        SELECT coalesce(u.mine, 0) + coalesce(u.theirs, 0)
        FROM unnest(o.counts, excluded.counts) WITH ORDINALITY AS u(mine, theirs, place) ORDER BY u.place);

-- name: minutes
-- Return the last minutes, `step` of them together: kept, missed, and how many took how long.
WITH spans AS (
    SELECT date_bin(make_interval(mins => %(step)s), o.minute, 'epoch'::timestamptz) AS begins, o.objective, o.kept, o.missed, o.counts
    FROM statesvc.objective_minute o
    WHERE o.minute > (SELECT date_trunc('minute', statesvc.clock()) - make_interval(mins => %(minutes)s))
)
SELECT s.begins, s.objective, sum(s.kept)::bigint, sum(s.missed)::bigint,
    CASE WHEN %(step)s = 1 THEN min(s.counts) ELSE '{}' END
FROM spans s GROUP BY s.begins, s.objective ORDER BY s.begins;

-- name: shares
-- Return of the last minutes together: kept and missed, by objective.
SELECT o.objective, sum(o.kept)::bigint, sum(o.missed)::bigint FROM statesvc.objective_minute o
WHERE o.minute > (SELECT statesvc.clock() - make_interval(mins => %(minutes)s)) GROUP BY o.objective;
