-- name: server_version
-- Return the server's version number, such as 180004, and its name, such as 18.4 or 19beta1.
SELECT current_setting('server_version_num')::int AS version, split_part(current_setting('server_version'), ' ', 1);

-- name: durable
-- Return the settings that would lose an acknowledged webhook.
SELECT s.name, s.setting FROM pg_settings s WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND s.setting = 'off';

-- name: housekeeping
-- Return what decides whether webhooks wait while the server keeps house: bytes, bytes, milliseconds, seconds between checkpoints, and
-- whether dead rows are taken away; and the bytes of the database.
SELECT pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('max_wal_size')),
    (SELECT s.setting::int FROM pg_settings s WHERE s.name = 'wal_writer_delay'),
    (SELECT s.setting::int FROM pg_settings s WHERE s.name = 'checkpoint_timeout'), current_setting('autovacuum')::bool,
    pg_database_size(current_database());

-- name: sees_others
-- Return the role that asks, and whether it sees what sessions of other roles do.
SELECT current_user, pg_has_role('pg_read_all_stats', 'USAGE');
