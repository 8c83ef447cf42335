-- name: backend
-- The server process behind this connection.
SELECT pg_backend_pid() AS pid;

-- name: forget_prepared
-- Frees what was prepared on this server connection.
DEALLOCATE ALL;

-- name: limits
-- The time limits of the transaction that asks, in milliseconds.
SELECT s.name, s.setting::int AS milliseconds FROM pg_settings s WHERE s.name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout');
