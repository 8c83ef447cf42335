-- name: attempts_at_message
-- The latest attempts at a message that did not settle it, over all its lives, oldest first.
SELECT a.attempt, a.worker, a.started_at, a.ended_at, a.outcome, a.error, a.normalizer FROM (
    SELECT * FROM statesvc.message_attempt m WHERE m.message_id = %(message_id)s ORDER BY m.attempt_id DESC LIMIT %(limit)s
) a ORDER BY a.attempt_id;

-- name: attempts_at_notification
-- The latest attempts at a notification as the log holds them, oldest first.
SELECT a.number, b.writer, a.started_at, a.recorded_at, a.outcome, CASE WHEN a.status_code IS NOT NULL THEN 'status ' || a.status_code END, NULL
FROM (
    SELECT * FROM statesvc.attempt t
    WHERE t.shipment_id = %(shipment_id)s AND t.sequence = %(sequence)s AND t.subscription_id = %(subscription_id)s
    ORDER BY t.number DESC, t.recorded_at DESC LIMIT %(limit)s
) a
LEFT JOIN statesvc.batch b ON b.batch_id = a.batch_id AND b.recorded_at = a.recorded_at
ORDER BY a.number, a.recorded_at;

-- name: notification_of
-- Which notification a letter is about.
SELECT d.subscription_id, d.shipment_id, d.sequence FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: other_lives
-- The other letters of the same message, oldest first.
SELECT d.dead_letter_id, d.created_at, d.cause, d.detail, d.attempts, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.message_id = %(message_id)s AND d.kind = 'message' AND d.dead_letter_id <> %(dead_letter_id)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: other_lives_of_notification
-- The other letters of the same notification, oldest first.
SELECT d.dead_letter_id, d.created_at, d.cause, d.detail, d.attempts, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.webhook_id = %(webhook_id)s AND d.dead_letter_id <> %(dead_letter_id)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;
