-- name: record
-- Record one test of a subscription that is not deleted.
INSERT INTO statesvc.test_attempt
    (subscription_id, webhook_id, type, carrier_id, tracking_number, sequence, started_at, recorded_at, duration_ms, outcome, status_code)
SELECT s.subscription_id, %(webhook_id)s, %(type)s, %(carrier_id)s, %(tracking_number)s, %(sequence)s::int, %(started_at)s::timestamptz,
    statesvc.clock(), %(duration_ms)s::int, %(outcome)s, %(status_code)s::int
FROM statesvc.subscription s WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL;

-- name: forget_old
-- Forget all but the newest tests of a subscription.
DELETE FROM statesvc.test_attempt t WHERE t.subscription_id = %(subscription_id)s AND t.webhook_id NOT IN (
    SELECT n.webhook_id FROM statesvc.test_attempt n WHERE n.subscription_id = %(subscription_id)s
    ORDER BY n.recorded_at DESC, n.webhook_id DESC LIMIT %(recorded_max)s::int);
