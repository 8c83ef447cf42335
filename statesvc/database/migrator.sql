-- name: has_ledger
-- Return whether this database was ever migrated.
SELECT to_regclass('statesvc.schema_migrations') IS NOT NULL;

-- name: applied_migrations
-- Return which numbered files were applied, with checksums.
SELECT version, sha256 FROM statesvc.schema_migrations ORDER BY version;

-- name: applied_functions
-- Return which files of functions were applied last, with checksums.
SELECT file, sha256 FROM statesvc.schema_functions ORDER BY file;

-- name: qualify_names
-- Have functions named with their schema, whatever the role's search path is.
SELECT set_config('search_path', 'pg_catalog, pg_temp', true);

-- name: functions
-- Return all functions of the schema, by signature.
SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'statesvc'::regnamespace;

-- name: functions_of_files
-- Return the functions that these files made when they were applied last and that still exist.
SELECT p.oid::regprocedure::text FROM statesvc.schema_functions f
CROSS JOIN unnest(f.functions) AS made(signature)
JOIN pg_proc p ON p.oid = to_regprocedure(made.signature)
WHERE f.file = ANY (%(files)s::text[]);

-- name: record_functions
-- Note that a file of functions was applied, and what it made.
INSERT INTO statesvc.schema_functions (file, sha256, functions, applied_at)
VALUES (%(file)s, %(sha256)s, %(functions)s::text[], clock_timestamp())
ON CONFLICT (file) DO UPDATE SET sha256 = excluded.sha256, functions = excluded.functions, applied_at = excluded.applied_at;

-- name: try_lock
-- Take the lock that lets one migrator work at a time. Never the waiting form: its snapshot would deadlock with CREATE INDEX CONCURRENTLY.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.migrate', 0));

-- name: unlock
-- Let the next migrator in.
SELECT pg_advisory_unlock(hashtextextended('statesvc.migrate', 0));

-- name: record
-- Note that a numbered file was applied.
INSERT INTO statesvc.schema_migrations (version, name, sha256, applied_at, duration_ms)
VALUES (%(version)s, %(name)s, %(sha256)s, clock_timestamp(), %(duration_ms)s);

-- name: is_invalid_index
-- Return whether this index is left over from a concurrent build that failed. Such a one still guards its key, but serves no query.
SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(name)s) AND NOT indisvalid);

-- name: who
-- Return the role of this connection.
SELECT current_user;

-- name: announce
-- Announce to the guard of the log's tables what the migrator does to them.
SELECT set_config('statesvc.log_ddl', 'migration', false);

-- name: is_superuser
-- Return whether this connection may make event triggers.
SELECT rolsuper FROM pg_roles WHERE rolname = current_user;

-- name: has_role
-- Return whether the server has a role of this name.
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(name)s);

-- name: can_partition
-- Return whether this schema makes its partitions itself.
SELECT to_regprocedure('statesvc.ensure_partitions()') IS NOT NULL;

-- name: can_announce
-- Return whether the guard knows this schema.
SELECT to_regprocedure('statesvc.announce_log_ddl(text)') IS NOT NULL;

-- name: make_schema
-- Make the schema in which everything of ours lives.
CREATE SCHEMA IF NOT EXISTS statesvc;

-- name: make_ledger
-- Make the ledger of which numbered files were applied, and when: one row each, for ever.
CREATE TABLE IF NOT EXISTS statesvc.schema_migrations (
    version int PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL,
    duration_ms int NOT NULL
);

-- name: make_function_ledger
-- Make the ledger of which text of each file of functions is in effect, and which functions it made: the next text of the file replaces
-- these.
CREATE TABLE IF NOT EXISTS statesvc.schema_functions (
    file text PRIMARY KEY,
    sha256 text NOT NULL,
    functions text[] NOT NULL,
    applied_at timestamptz NOT NULL
);

-- name: make_partitions
-- Open the partitions that the coming weeks need.
SELECT count(*) FROM statesvc.ensure_partitions();

-- name: can_enable_triggers
-- Return whether this schema has the function.
SELECT to_regprocedure('statesvc.enable_triggers()') IS NOT NULL;

-- name: enable_triggers
-- Have every trigger fire in every session; return those that did not.
SELECT array_agg(e.name ORDER BY e.name) FROM statesvc.enable_triggers() AS e(name);

-- name: wait_briefly
-- Limit the waits for locks, for statements that would make traffic queue behind them. How long they work is not limited.
SELECT set_config('lock_timeout', '3s', false), set_config('statement_timeout', '0', false);

-- name: wait_longer
-- Allow longer waits for locks, for statements that block nobody while they wait.
SELECT set_config('lock_timeout', '10min', false);
