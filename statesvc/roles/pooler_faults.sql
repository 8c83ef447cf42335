-- name: backend
-- The server process behind this connection.
SELECT pg_backend_pid() AS pid;

-- name: forget_prepared
-- Frees what was prepared on this server connection.
DEALLOCATE ALL;

-- name: limits
-- The time limits of the transaction that asks, in milliseconds, by the names that the pool has for them.
SELECT CASE s.name WHEN 'statement_timeout' THEN 'statement_ms' WHEN 'lock_timeout' THEN 'lock_ms' ELSE 'idle_in_transaction_ms' END AS name,
    s.setting::int AS milliseconds
FROM pg_settings s WHERE s.name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout');
