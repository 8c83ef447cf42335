-- name: batch_bounds
-- Return the lowest and the highest batch of the entries of one kind that were recorded in a month, and how many there are.
SELECT min(batch_id), max(batch_id), count(*) FROM {table} WHERE recorded_at >= %(begins)s AND recorded_at < %(ends)s;

-- name: index_bounds
-- Return where these batches stand in the tree, and whether any of them is not sealed yet.
SELECT (SELECT min(s.first_index) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    (SELECT max(s.first_index + s.entries) FROM statesvc.sealed_batch s WHERE s.batch_id BETWEEN %(low)s AND %(high)s),
    EXISTS (SELECT FROM statesvc.unsealed u WHERE u.batch_id BETWEEN %(low)s AND %(high)s AND u.recorded_from < %(ends)s);

-- name: entries
-- Return a month's entries of one kind in a range of the log.
SELECT s.first_index + e.ordinal, e.batch_id, e.ordinal, e.canonical, {sealed_part}
FROM statesvc.sealed_batch s JOIN {table} e ON e.batch_id = s.batch_id
WHERE s.first_index >= %(low)s AND s.first_index < %(high)s AND e.recorded_at >= %(begins)s AND e.recorded_at < %(ends)s;
