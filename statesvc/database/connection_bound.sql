-- name: connection_bound
-- Return what bounds the sessions of the role that asks: its own limit, the database's, the server's without what it keeps in reserve; -1:
-- none. And the sessions of others: in this database, and on the server.
SELECT current_user, current_database(),
    CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END AS role_limit,
    CASE WHEN r.rolsuper THEN -1 ELSE d.datconnlimit END AS database_limit,
    current_setting('max_connections')::int AS server_limit,
    current_setting('superuser_reserved_connections')::int
        + CASE WHEN pg_has_role('pg_use_reserved_connections', 'USAGE') THEN 0 ELSE current_setting('reserved_connections')::int END AS reserved,
    o.in_database, o.on_server
FROM pg_roles r, pg_database d, (
    SELECT count(*) FILTER (WHERE a.datname = current_database()) AS in_database, count(*) AS on_server
    FROM pg_stat_activity a WHERE a.datname IS NOT NULL AND a.usename IS NOT NULL AND a.usename <> current_user
) o
WHERE r.rolname = current_user AND d.datname = current_database();
