-- name: role_of_server
-- Return which cluster this is, and whether it follows another.
SELECT c.system_identifier, pg_is_in_recovery() FROM pg_control_system() c;

-- name: behind
-- Return how many bytes of the write-ahead log the standby has not replayed.
SELECT pg_wal_lsn_diff(%(lsn)s::pg_lsn, pg_last_wal_replay_lsn())::bigint;

-- name: written
-- Return how far the primary has written.
SELECT pg_current_wal_insert_lsn()::text;

-- name: is_fenced
-- Return whether a session that began now only reads.
SELECT current_setting('default_transaction_read_only')::boolean;

-- name: end_others
-- End all sessions but this one: what they had not committed is rolled back.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();

-- name: writers
-- Return the sessions, and the transactions prepared by them, that may still write.
SELECT (
    SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
) + (SELECT count(*) FROM pg_prepared_xacts);

-- name: contents
-- Return what both servers must agree on once the standby has replayed everything: the newest head, the last batches, what waits.
SELECT
    (SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint),
    (SELECT coalesce(max(batch_id), 0) FROM statesvc.batch),
    (SELECT count(*) FROM statesvc.unsealed),
    (SELECT count(*) FROM statesvc.inbox),
    (SELECT count(*) FROM statesvc.outbox),
    (SELECT coalesce(max(dead_letter_id), 0) FROM statesvc.dead_letter);
