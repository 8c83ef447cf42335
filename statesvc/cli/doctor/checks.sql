-- name: clock_definition
-- Return how `statesvc.clock()` is defined, and how far it is from the server's own clock.
SELECT pg_get_functiondef(to_regprocedure('statesvc.clock()')) AS definition,
    abs(extract(epoch FROM statesvc.clock() - clock_timestamp())) AS seconds_off;

-- name: service_keys
-- Return how many of the service's own keys exist; none before its first start.
SELECT count(*) FROM statesvc.service_key;

-- name: postponed
-- Return the messages that were given back repeatedly because a shipment of theirs is locked, since when, and the oldest transaction of ours that may
-- hold it: its process and what it is.
SELECT p.messages, p.carriers, p.seconds, h.pid, h.application_name, h.seconds
FROM (
    SELECT count(*) AS messages, array_agg(DISTINCT q.carrier_id ORDER BY q.carrier_id) AS carriers,
        extract(epoch FROM statesvc.clock() - min(q.received_at))::float8 AS seconds
    FROM statesvc.inbox q WHERE q.postponed >= 3
) p
LEFT JOIN LATERAL (
    SELECT a.pid, a.application_name, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.relation = 'statesvc.stream'::regclass AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND a.pid <> pg_backend_pid()
    ORDER BY a.xact_start LIMIT 1
) h ON true
WHERE p.messages > 0;

-- name: zones
-- Return the releases of time zones by which running workers read local times, and of each that was ever used from when to when.
SELECT z.zones, z.first_at, z.last_at, EXISTS (
    SELECT FROM statesvc.worker w WHERE w.zones = z.zones AND w.last_seen_at > statesvc.clock() - interval '1 minute')
FROM statesvc.zone_release z ORDER BY z.first_at;
