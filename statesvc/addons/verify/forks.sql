-- name: forks
-- Return the forks of the log, in its order.
SELECT s.first_index + a.ordinal, a.batch_id, a.canonical FROM statesvc.action a JOIN statesvc.sealed_batch s ON s.batch_id = a.batch_id
WHERE a.verb = %(verb)s AND a.recorded_at BETWEEN s.recorded_from AND s.recorded_to
ORDER BY 1;

-- name: epochs
-- Return the epochs as writers and readers find them.
SELECT epoch, begins FROM statesvc.log_epoch;
