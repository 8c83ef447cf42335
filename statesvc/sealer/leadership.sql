-- name: silent_lead
-- Return the session that has the lead of the sealers and has said nothing for `silent_seconds`, or is `lost_pid`: the server's process,
-- and for how long it has been silent.
SELECT a.pid, extract(epoch FROM clock_timestamp() - a.state_change)::float8
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('statesvc.sealer', 0)
    AND (a.pid = %(lost_pid)s::int OR a.state_change < clock_timestamp() - make_interval(secs => %(silent_seconds)s::float8));

-- name: end_session
-- End a session of this role. One whose process is stopped stays.
SELECT pg_terminate_backend(%(pid)s::int);
