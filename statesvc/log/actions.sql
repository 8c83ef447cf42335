-- name: newest
-- Return the operator actions before a place in the log, the newest first: `found_max` of those that are wanted among the next
-- `scanned_max`, each with how many were searched and where that ended. One row without an action where none is wanted.
WITH scanned AS MATERIALIZED (
    SELECT a.batch_id, a.ordinal, a.recorded_at, a.actor, a.verb, a.target, a.canonical FROM statesvc.action a
    WHERE (a.batch_id, a.ordinal) < (%(before_batch)s::bigint, %(before_ordinal)s::bigint)
    ORDER BY a.batch_id DESC, a.ordinal DESC LIMIT %(scanned_max)s
), ended AS (
    SELECT count(*) OVER () AS scanned, s.batch_id, s.ordinal FROM scanned s ORDER BY s.batch_id, s.ordinal LIMIT 1
), found AS (
    SELECT s.* FROM scanned s
    WHERE starts_with(s.actor, %(actor)s::text) AND starts_with(s.verb, %(verb)s::text) AND starts_with(s.target, %(target)s::text)
    ORDER BY s.batch_id DESC, s.ordinal DESC LIMIT %(found_max)s
)
SELECT e.scanned, e.batch_id, e.ordinal, f.batch_id, f.ordinal, f.recorded_at, f.actor, f.verb, f.target,
    convert_from(f.canonical, 'UTF8')::jsonb -> 'details'
FROM ended e LEFT JOIN found f ON true
ORDER BY f.batch_id DESC, f.ordinal DESC;
