-- name: settings
-- A notification is a hint: its commit waits for no disk.
SET synchronous_commit = off;

-- name: notify
-- Notifies listeners on these channels.
SELECT pg_notify(u.channel, u.payload) FROM unnest(%(channels)b::text[], %(payloads)b::text[]) AS u(channel, payload);
