-- name: limit_session
-- The time limits and the time zone of a connection.
SELECT set_config('statement_timeout', %(statement_ms)s, false),
       set_config('lock_timeout', %(lock_ms)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle_in_transaction_ms)s, false),
       set_config('TimeZone', 'UTC', false);
