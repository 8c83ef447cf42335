-- name: set
-- Set settings of the session by their names.
SELECT set_config(s.name, s.setting, false) FROM unnest(%(names)b::text[], %(settings)b::text[]) AS s(name, setting);

-- name: set_local
-- Set settings of the transaction alone by their names.
SELECT set_config(s.name, s.setting, true) FROM unnest(%(names)b::text[], %(settings)b::text[]) AS s(name, setting);

-- name: end_read_session
-- End the server connection behind a pooler if it only reads because it logged in while that was the default; of a standby all only read.
SELECT pg_terminate_backend(pg_backend_pid()) WHERE current_setting('transaction_read_only')::boolean AND NOT pg_is_in_recovery();
