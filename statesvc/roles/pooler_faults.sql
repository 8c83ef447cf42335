-- name: backend
-- Return the server process behind this connection.
SELECT pg_backend_pid() AS pid;

-- name: forget_prepared
-- Free what was prepared on this server connection.
DEALLOCATE ALL;
