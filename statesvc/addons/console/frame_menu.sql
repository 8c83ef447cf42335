-- name: counts
-- Return what waits for a human: open dead letters, subscriptions that fail or are disabled, notices that nobody saw; each as far as
-- `count_max`.
SELECT
    (SELECT count(*) FROM (SELECT FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL LIMIT %(count_max)s) d),
    (SELECT count(*) FROM (
        SELECT FROM statesvc.subscription s
        LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
        WHERE s.deleted_at IS NULL AND (s.disabled_at IS NOT NULL OR f.since < statesvc.clock() - interval '1 minute')
        LIMIT %(count_max)s
    ) s),
    (SELECT count(*) FROM (SELECT FROM statesvc.notice n WHERE n.seen_at IS NULL LIMIT %(count_max)s) n);
