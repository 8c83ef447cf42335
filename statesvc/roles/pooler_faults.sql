-- name: backend
-- Return the server process behind this connection.
SELECT pg_backend_pid() AS pid;

-- name: forget_prepared
-- Free what was prepared on this server connection.
DEALLOCATE ALL;

-- name: limits
-- Return the time limits of the transaction that asks, in milliseconds.
SELECT s.name, s.setting::int AS milliseconds FROM pg_settings s WHERE s.name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout');
