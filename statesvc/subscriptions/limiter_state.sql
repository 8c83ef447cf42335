-- name: limiter
-- What the notifiers know of a subscription's receiver, summed up; of those that said so lately, because a dead one takes nothing back.
-- It may be called when the pause that it asked for is over and at least one notifier's breaker lets a probe through.
SELECT coalesce(sum(l.concurrency), 0)::int AS "limit", coalesce(sum(l.in_flight), 0)::int AS in_flight,
    (sum(l.mean_latency_seconds * l.concurrency) / sum(l.concurrency) FILTER (WHERE l.mean_latency_seconds IS NOT NULL)) AS mean_latency_seconds,
    CASE WHEN bool_or(l.breaker = 'open') THEN 'open' WHEN bool_or(l.breaker = 'half_open') THEN 'half_open' ELSE 'closed' END AS breaker,
    nullif(greatest(h.not_before, t.at, CASE WHEN bool_and(l.breaker = 'open') THEN min(l.open_until) END), t.at) AS next_allowed_at,
    count(l.worker)::int AS notifiers
FROM (SELECT statesvc.clock() AS at) t
LEFT JOIN statesvc.throttle h ON h.subscription_id = %(subscription_id)s
LEFT JOIN statesvc.limiter_state l ON l.subscription_id = %(subscription_id)s AND l.updated_at > t.at - interval '15 minutes'
GROUP BY t.at, h.not_before;
