-- name: limit_session
-- The time limits of a connection. And months of the log are left out by their bounds alone: by default the planner also tries to refute
-- the CHECK constraints of each table that it looks into, which took a tenth of what a page of the feed cost the server.
SELECT set_config('constraint_exclusion', 'off', false),
       set_config('statement_timeout', %(statement_ms)s::text, false),
       set_config('lock_timeout', %(lock_ms)s::text, false),
       set_config('idle_in_transaction_session_timeout', %(idle_in_transaction_ms)s::text, false);

-- name: limit_whole_transactions
-- The time limit of a transaction, from its first statement to its end; PostgreSQL 17 and later.
SELECT set_config('transaction_timeout', %(transaction_ms)s::text, false);

-- name: limit_transaction
-- The time limits of one statement that is a transaction of its own.
SELECT set_config('statement_timeout', %(statement_ms)s::text, true), set_config('lock_timeout', %(lock_ms)s::text, true);

-- name: keep_utc
-- Times are read in UTC. A pooler in transaction mode carries this setting over by itself.
SET TimeZone = 'UTC';
