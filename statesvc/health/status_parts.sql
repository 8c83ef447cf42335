-- name: wait_briefly
-- Have this transaction wait for a lock for no longer than a person would.
SELECT set_config('lock_timeout', '500', true);
