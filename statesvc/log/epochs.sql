-- name: epochs
-- Return all epochs of the log, and where they begin.
SELECT epoch, begins FROM statesvc.log_epoch ORDER BY epoch;
