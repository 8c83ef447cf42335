-- name: alive
-- Does the database answer?
SELECT 1;

-- name: applied
-- The migrations that this database has.
SELECT version::int FROM statesvc.schema_migrations;

-- name: refusal
-- Why the sealer does not go on with this log.
SELECT why FROM statesvc.sealing_refusal;
