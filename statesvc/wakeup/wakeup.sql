-- name: settings
-- A notification is a hint: its commit waits for no disk.
SET synchronous_commit = off;

-- name: notify
-- Wakes whoever listens on these channels.
SELECT pg_notify(c, '') FROM unnest(%(channels)b::text[]) AS c;

-- name: notify_of
-- Wakes whoever listens on these channels, and says whose work it is.
SELECT pg_notify(u.channel, u.payload) FROM unnest(%(channels)b::text[], %(payloads)b::text[]) AS u(channel, payload);

-- name: notify_in_passing
-- The same of one channel, on a connection that has other things to do: it does not wait long for others that notify.
-- A transaction of its own, for in one that writes it would lock the whole cluster through the flush to disk; this one waits for no disk.
SELECT set_config('lock_timeout', '20ms', true), pg_notify(%(channel)s::text, %(payload)s::text);
