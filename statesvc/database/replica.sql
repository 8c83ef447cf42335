-- name: staleness
-- Return how many seconds ago the newest transaction that this standby shows was committed; NULL on a primary, and before the first one.
SELECT CASE WHEN pg_is_in_recovery() AND pg_last_xact_replay_timestamp() IS NOT NULL
    THEN greatest(extract(epoch FROM statesvc.clock() - pg_last_xact_replay_timestamp()), 0)::float8 END;
