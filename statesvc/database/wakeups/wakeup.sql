-- name: settings
-- Have the commit wait for no disk, because a notification is only a hint.
SET synchronous_commit = off;

-- name: notify
-- Notify listeners on these channels.
SELECT pg_notify(u.channel, u.payload) FROM unnest(%(channels)b::text[], %(payloads)b::text[]) AS u(channel, payload);
