-- name: forks_since
-- Where this epoch and those after it begin.
SELECT epoch, begins FROM statesvc.log_epoch WHERE epoch >= %(epoch)s ORDER BY epoch;
