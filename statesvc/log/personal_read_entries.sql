-- name: begin
-- Make the row of this reader, target and hour, unless it is there: who made it waits to be recorded. Return the hour, the seconds until it
-- can be closed, and whether this was its first reading. One that is being made meanwhile is waited for.
WITH tick AS MATERIALIZED (
    SELECT date_trunc('hour', c.at, 'UTC') AS hour, c.at FROM (SELECT statesvc.clock() AS at) c
), made AS (
    INSERT INTO statesvc.personal_reading (actor, target, hour) SELECT %(actor)s, %(target)s, t.hour FROM tick t
    ON CONFLICT (actor, target, hour) DO NOTHING RETURNING hour
)
SELECT t.hour, extract(epoch FROM t.hour + interval '61 minutes' - t.at)::float8, EXISTS (SELECT FROM made) FROM tick t;

-- name: count_further
-- Add what was read again; in the order of the key, so that no two processes hold each other's rows.
INSERT INTO statesvc.personal_reading AS p (actor, target, hour, further)
SELECT u.actor, u.target, u.hour, u.further
FROM unnest(%(actors)b::text[], %(targets)b::text[], %(hours)b::timestamptz[], %(furthers)b::bigint[]) AS u(actor, target, hour, further)
ORDER BY u.actor, u.target, u.hour
ON CONFLICT (actor, target, hour) DO UPDATE SET further = p.further + excluded.further;

-- name: take_ended
-- Take some rows of hours that have been over for a minute: all processes have counted by then.
DELETE FROM statesvc.personal_reading r WHERE r.ctid = ANY (ARRAY(
    SELECT q.ctid FROM statesvc.personal_reading q WHERE q.hour <= statesvc.clock() - interval '61 minutes'
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING r.actor, r.target, r.hour, r.further;
