-- name: attempts
-- Return what was tried for a subscription, the newest first, before a position: the tries at what has not ended, those of the entries of
-- what has, which count as of then, and tests.
SELECT n.webhook_id, x.shipment_id, x.sequence, x.number, x.outcome, x.status_code, x.duration_ms, x.started_at, x.recorded_at,
    n.type, n.carrier_id, n.tracking_number, x.last_number, coalesce(x.covering_id, n.webhook_id) AS covering_id, x.sealed_part, k.sealed_key
FROM (
    (SELECT o.shipment_id, o.sequence, o.number, o.outcome, o.status_code, o.duration_ms, o.started_at, o.recorded_at, o.sealed_part,
        NULL::int AS last_number, NULL AS covering_id
    FROM statesvc.open_attempt o
    WHERE o.subscription_id = %(subscription_id)s
        AND (%(before_recorded_at)s::timestamptz IS NULL OR o.recorded_at <= %(before_recorded_at)s::timestamptz))
    UNION ALL
    (SELECT a.shipment_id, t.sequence, t.number, t.outcome, t.status_code, t.duration_ms, t.started_at, a.recorded_at, a.sealed_part,
        a.number, m.webhook_id
    FROM statesvc.attempt a
    JOIN statesvc.notification m ON m.shipment_id = a.shipment_id AND m.sequence = a.sequence AND m.subscription_id = a.subscription_id
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) t
    WHERE a.subscription_id = %(subscription_id)s
        AND (%(before_recorded_at)s::timestamptz IS NULL OR a.recorded_at <= %(before_recorded_at)s::timestamptz))
) x
LEFT JOIN statesvc.stream k ON k.shipment_id = x.shipment_id
JOIN statesvc.notification n ON n.shipment_id = x.shipment_id AND n.sequence = x.sequence AND n.subscription_id = %(subscription_id)s
WHERE %(before_recorded_at)s::timestamptz IS NULL OR (x.recorded_at, n.webhook_id, x.number)
    < (%(before_recorded_at)s::timestamptz, %(before_webhook_id)s::text, %(before_number)s::bigint)
UNION ALL
SELECT t.webhook_id, NULL, t.sequence, 1, t.outcome, t.status_code, t.duration_ms, t.started_at, t.recorded_at,
    t.type, t.carrier_id, t.tracking_number, NULL, t.webhook_id, NULL, NULL
FROM statesvc.test_attempt t
WHERE t.subscription_id = %(subscription_id)s AND (%(before_recorded_at)s::timestamptz IS NULL OR (t.recorded_at, t.webhook_id, 1)
    < (%(before_recorded_at)s::timestamptz, %(before_webhook_id)s::text, %(before_number)s::bigint))
ORDER BY recorded_at DESC, webhook_id DESC, number DESC LIMIT %(limit)s;

-- name: recent_tries
-- Return the newest `limit` tries that began within the last hour; `limit` bounds what is read of each source, too.
SELECT x.started_at, x.duration_ms, x.outcome
FROM (
    (SELECT o.started_at, o.duration_ms, o.outcome FROM statesvc.open_attempt o
    WHERE o.subscription_id = %(subscription_id)s AND o.recorded_at > %(now)s::timestamptz - interval '1 hour'
    ORDER BY o.recorded_at DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT t.started_at, t.duration_ms, t.outcome
    FROM (
        SELECT a.* FROM statesvc.attempt a
        WHERE a.subscription_id = %(subscription_id)s AND a.recorded_at > %(now)s::timestamptz - interval '1 hour'
        ORDER BY a.recorded_at DESC LIMIT %(limit)s
    ) a
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) t)
    UNION ALL
    (SELECT t.started_at, t.duration_ms, t.outcome FROM statesvc.test_attempt t WHERE t.subscription_id = %(subscription_id)s)
) x
WHERE x.started_at > %(now)s::timestamptz - interval '1 hour'
ORDER BY x.started_at DESC LIMIT %(limit)s;

-- name: now
-- Return the time by the database's clock.
SELECT statesvc.clock();

-- name: limiter
-- Return what the notifiers know of a subscription's receiver, summed up; of those that said so lately, because a dead one takes nothing
-- back. It may be called when the pause that it asked for is over and at least one notifier's breaker lets a probe through.
SELECT coalesce(sum(l.concurrency), 0)::int AS "limit", coalesce(sum(l.in_flight), 0)::int AS in_flight,
    (sum(l.mean_latency_seconds * l.concurrency) / sum(l.concurrency) FILTER (WHERE l.mean_latency_seconds IS NOT NULL)) AS mean_latency_seconds,
    CASE WHEN bool_or(l.breaker = 'open') THEN 'open' WHEN bool_or(l.breaker = 'half_open') THEN 'half_open' ELSE 'closed' END AS breaker,
    nullif(greatest(h.not_before, t.at, CASE WHEN bool_and(l.breaker = 'open') THEN min(l.open_until) END), t.at) AS next_allowed_at,
    count(l.worker)::int AS notifiers
FROM (SELECT statesvc.clock() AS at) t
LEFT JOIN statesvc.throttle h ON h.subscription_id = %(subscription_id)s
LEFT JOIN statesvc.limiter_state l ON l.subscription_id = %(subscription_id)s AND l.updated_at > t.at - interval '15 minutes'
GROUP BY t.at, h.not_before;
