-- name: minutes
-- Return what all carriers pushed in each minute of the last hour: new, repeated, refused.
SELECT m.minute, coalesce(sum(t.accepted), 0)::bigint, coalesce(sum(t.duplicates), 0)::bigint, coalesce(sum(t.refused), 0)::bigint
FROM generate_series(date_trunc('minute', statesvc.clock()) - interval '59 minutes', date_trunc('minute', statesvc.clock()), interval '1 minute')
    AS m(minute)
LEFT JOIN statesvc.ack_count t ON t.minute = m.minute
GROUP BY m.minute ORDER BY m.minute;
