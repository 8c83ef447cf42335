-- name: may_read_keys
-- Return whether the role that asks may read the shipments' keys.
SELECT has_column_privilege('statesvc.stream', 'sealed_key', 'SELECT');
