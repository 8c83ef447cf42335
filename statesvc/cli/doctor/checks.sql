-- name: clock_definition
-- How `statesvc.clock()` is defined, and how far it is from the server's own clock.
SELECT pg_get_functiondef(to_regprocedure('statesvc.clock()')) AS definition,
    abs(extract(epoch FROM statesvc.clock() - clock_timestamp())) AS seconds_off;

-- name: partition_horizon
-- The days from now to the end of the last partition, of the table where that is nearest.
SELECT p.table_name,
    min(date_part('day', (substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)'))::timestamptz - statesvc.clock())) AS days
FROM statesvc.partitioned p
JOIN LATERAL (
    SELECT k.oid, k.relpartbound FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid
    WHERE i.inhparent = to_regclass('statesvc.' || p.table_name)
    ORDER BY (substring(pg_get_expr(k.relpartbound, k.oid) FROM 'TO \(''([^'']+)''\)'))::timestamptz DESC LIMIT 1
) c ON true
GROUP BY p.table_name ORDER BY days LIMIT 1;

-- name: service_keys
-- How many of the service's own keys exist; none before its first start.
SELECT count(*) FROM statesvc.service_key;

-- name: waiting
-- What waits for a human, and which kill switches are on.
SELECT (SELECT count(*) FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL) AS dead_letters,
    (SELECT coalesce(array_agg(r.carrier_id ORDER BY r.carrier_id), '{}') FROM statesvc.rollout r WHERE r.hold) AS held;
