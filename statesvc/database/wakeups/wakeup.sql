-- name: settings
-- A notification is a hint: its commit waits for no disk.
SET synchronous_commit = off;

-- name: notify
-- Wakes all who listen on these channels.
SELECT pg_notify(c, '') FROM unnest(%(channels)b::text[]) AS c;
