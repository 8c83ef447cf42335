-- name: clocks
-- Return the database's time, when it sealed last, and the latest recording among the newest batches that wait to be sealed.
SELECT statesvc.clock(), (SELECT s.sealed_at FROM statesvc.sealed_batch s ORDER BY s.first_index DESC LIMIT 1),
    (SELECT max(w.recorded_from) FROM (SELECT u.recorded_from FROM statesvc.unsealed u ORDER BY u.batch_id DESC LIMIT 500) w);
