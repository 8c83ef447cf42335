-- name: batch_bounds
-- Return the lowest and the highest batch of the entries that were recorded in a month, and how many entries each kind has.
SELECT min(x.low), max(x.high), max(x.entries) FILTER (WHERE x.kind = 'event') AS event, max(x.entries) FILTER (WHERE x.kind = 'conflict') AS conflict,
    max(x.entries) FILTER (WHERE x.kind = 'transition') AS transition, max(x.entries) FILTER (WHERE x.kind = 'fanout') AS fanout,
    max(x.entries) FILTER (WHERE x.kind = 'attempt') AS attempt, max(x.entries) FILTER (WHERE x.kind = 'observation') AS observation,
    max(x.entries) FILTER (WHERE x.kind = 'action') AS action
FROM (
    SELECT 'event' AS kind, min(batch_id) AS low, max(batch_id) AS high, count(*) AS entries
    FROM statesvc.event WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'conflict', min(batch_id), max(batch_id), count(*) FROM statesvc.conflict WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'transition', min(batch_id), max(batch_id), count(*)
    FROM statesvc.transition WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'fanout', min(batch_id), max(batch_id), count(*) FROM statesvc.fanout WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'attempt', min(batch_id), max(batch_id), count(*) FROM statesvc.attempt WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'observation', min(batch_id), max(batch_id), count(*)
    FROM statesvc.observation WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
    UNION ALL
    SELECT 'action', min(batch_id), max(batch_id), count(*) FROM statesvc.action WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s
) x;

-- name: index_bounds
-- Return where these batches stand in the tree, and whether any of them is not sealed yet.
SELECT (SELECT min(s.first_index) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    (SELECT max(s.first_index + s.entries) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    EXISTS (SELECT FROM statesvc.unsealed u WHERE u.batch_id BETWEEN %(low)s AND %(high)s AND u.recorded_from < %(ends)s);

-- name: event
-- Return a month's events in a range of the log.
SELECT s.first_index + e.ordinal, e.batch_id, e.ordinal, e.canonical, e.sealed_part
FROM statesvc.sealed_batch s JOIN statesvc.event e ON e.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND e.recorded_at >= %(begins)s AND e.recorded_at < %(ends)s;

-- name: conflict
-- Return a month's conflicts in a range of the log.
SELECT s.first_index + c.ordinal, c.batch_id, c.ordinal, c.canonical, c.sealed_part
FROM statesvc.sealed_batch s JOIN statesvc.conflict c ON c.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND c.recorded_at >= %(begins)s AND c.recorded_at < %(ends)s;

-- name: transition
-- Return a month's transitions in a range of the log.
SELECT s.first_index + t.ordinal, t.batch_id, t.ordinal, t.canonical, NULL::bytea
FROM statesvc.sealed_batch s JOIN statesvc.transition t ON t.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND t.recorded_at >= %(begins)s AND t.recorded_at < %(ends)s;

-- name: fanout
-- Return a month's fan-outs in a range of the log.
SELECT s.first_index + f.ordinal, f.batch_id, f.ordinal, f.canonical, NULL::bytea
FROM statesvc.sealed_batch s JOIN statesvc.fanout f ON f.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND f.recorded_at >= %(begins)s AND f.recorded_at < %(ends)s;

-- name: attempt
-- Return a month's ends of notifications in a range of the log.
SELECT s.first_index + a.ordinal, a.batch_id, a.ordinal, a.canonical, a.sealed_part
FROM statesvc.sealed_batch s JOIN statesvc.attempt a ON a.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND a.recorded_at >= %(begins)s AND a.recorded_at < %(ends)s;

-- name: observation
-- Return a month's observations in a range of the log.
SELECT s.first_index + v.ordinal, v.batch_id, v.ordinal, v.canonical, NULL::bytea
FROM statesvc.sealed_batch s JOIN statesvc.observation v ON v.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND v.recorded_at >= %(begins)s AND v.recorded_at < %(ends)s;

-- name: action
-- Return a month's actions in a range of the log.
SELECT s.first_index + o.ordinal, o.batch_id, o.ordinal, o.canonical, NULL::bytea
FROM statesvc.sealed_batch s JOIN statesvc.action o ON o.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND o.recorded_at >= %(begins)s AND o.recorded_at < %(ends)s;
