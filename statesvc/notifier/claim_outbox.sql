-- name: claim
-- Lease up to `limit` notifications, of each subscription what may be sent to it now and no more; the others are not considered. Of a
-- shipment only the head, and only while nothing else of it is under way. Retries come first, but only as many as their share allows; what
-- they leave is for first attempts. Nothing while the sealer refuses this log. Subscriptions with the least in flight come first.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), lane AS MATERIALIZED (
    SELECT s.subscription_id, least(coalesce(k.free, %(fresh_free)s::int), bucket.tokens)::int AS free,
        coalesce(k.retries, %(fresh_retries)s::int) AS retries, s.rate_per_second, bucket.since
    FROM statesvc.subscription s
    CROSS JOIN tick t
    LEFT JOIN unnest(%(known_ids)b::uuid[], %(frees)b::int[], %(retries)b::int[], %(in_flights)b::int[], %(not_befores)b::timestamptz[])
        AS k(subscription_id, free, retries, in_flight, not_before) ON k.subscription_id = s.subscription_id
    LEFT JOIN statesvc.throttle h ON h.subscription_id = s.subscription_id
    -- a contracted rate is one bucket for all notifiers: the notifier that claims from it locks it until the commit, the others skip it
    LEFT JOIN LATERAL (
        SELECT greatest(r.spent_until, b.full_at) AS since,
            floor(1e-6 + s.rate_per_second * extract(epoch FROM t.at - greatest(r.spent_until, b.full_at))::float8) AS tokens
        FROM statesvc.throttle r
        CROSS JOIN LATERAL (SELECT t.at - make_interval(secs => greatest(1 / s.rate_per_second, 1)) AS full_at) b
        WHERE r.subscription_id = s.subscription_id AND s.rate_per_second IS NOT NULL
            AND EXISTS (SELECT FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id)
        FOR UPDATE OF r SKIP LOCKED
    ) bucket ON true
    WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL AND NOT EXISTS (SELECT FROM statesvc.sealing_refusal)
        AND coalesce(k.free, %(fresh_free)s::int) > 0 AND (s.rate_per_second IS NULL OR bucket.tokens >= 1)
        AND coalesce(k.not_before <= t.at, true) AND coalesce(h.not_before <= t.at, true)
    ORDER BY coalesce(k.in_flight, 0), random()
), again AS MATERIALIZED (
    SELECT q.subscription_id, q.row_id FROM lane l CROSS JOIN LATERAL (
        SELECT o.subscription_id, o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = l.subscription_id AND o.attempts > 0 AND o.available_at <= (SELECT at FROM tick)
            AND NOT EXISTS (
                SELECT FROM statesvc.outbox e
                WHERE e.subscription_id = o.subscription_id AND e.shipment_id = o.shipment_id AND e.sequence <> o.sequence
                    AND (e.sequence < o.sequence OR e.token IS NOT NULL AND e.available_at > (SELECT at FROM tick)))
        ORDER BY o.available_at, o.shipment_id LIMIT least(l.free, l.retries) FOR UPDATE OF o SKIP LOCKED
    ) q LIMIT least(%(retry_limit)s::int, %(limit)s::int)
), first AS MATERIALIZED (
    SELECT q.subscription_id, q.row_id FROM lane l CROSS JOIN LATERAL (
        SELECT o.subscription_id, o.ctid AS row_id FROM statesvc.outbox o
        WHERE o.subscription_id = l.subscription_id AND o.attempts = 0 AND o.available_at <= (SELECT at FROM tick)
            AND NOT EXISTS (
                SELECT FROM statesvc.outbox e
                WHERE e.subscription_id = o.subscription_id AND e.shipment_id = o.shipment_id AND e.sequence <> o.sequence
                    AND (e.sequence < o.sequence OR e.token IS NOT NULL AND e.available_at > (SELECT at FROM tick)))
        ORDER BY o.available_at, o.shipment_id
        LIMIT l.free - (SELECT count(*) FROM again a WHERE a.subscription_id = l.subscription_id) FOR UPDATE OF o SKIP LOCKED
    ) q LIMIT %(limit)s::int - (SELECT count(*) FROM again)
), taken AS MATERIALIZED (
    SELECT subscription_id, row_id FROM again UNION ALL SELECT subscription_id, row_id FROM first
), charged AS (
    UPDATE statesvc.throttle h SET spent_until = c.since + make_interval(secs => c.tokens / c.rate_per_second)
    FROM (
        SELECT l.subscription_id, l.since, l.rate_per_second, count(*) AS tokens FROM lane l JOIN taken USING (subscription_id)
        WHERE l.rate_per_second IS NOT NULL GROUP BY 1, 2, 3
    ) c WHERE h.subscription_id = c.subscription_id
), leased AS (
    -- by ctid of the locked rows, not by a join: the planner overestimates `taken` and would scan the whole outbox
    UPDATE statesvc.outbox o
    SET token = %(token)s::uuid, worker = %(worker)s::text, attempts = o.attempts + 1,
        available_at = (SELECT at FROM tick) + make_interval(secs => %(lease_seconds)s::float8)
    WHERE o.ctid = ANY (ARRAY(SELECT row_id FROM taken))
    RETURNING o.subscription_id, o.shipment_id, o.sequence, o.attempts, o.earlier_attempts, o.created_at, o.received_at, o.traceparent
)
-- the notification, where it goes, with which login, headers and secrets, the key that the attempt is sealed under (NULL once erased), and whether
-- another one of its shipment waits; each looked up by itself, for the planner expects more than there are. The time by which it was decided, also where nothing is leased.
SELECT l.subscription_id, l.shipment_id, l.sequence, n.webhook_id, n.type, n.created_at, n.occurred_at, n.occurred_offset_seconds, n.epoch,
    n.carrier_id, n.tracking_number, n.from_status, n.to_status, g.skipped, g.from_sequence, g.to_sequence, n.observed, s.url,
    s.payload = 'full', s.pii, (s.give_up_after ->> n.type)::float8,
    n.created_at - n.occurred_at > make_interval(secs => s.max_age_seconds), s.sealed_secrets, s.sealed_login, s.sealed_headers, s.second_signature,
    k.sealed_key, s.rate_per_second IS NOT NULL, f.shipment_id IS NOT NULL, l.attempts, l.earlier_attempts, l.created_at, l.received_at, l.traceparent, t.at
FROM tick t
LEFT JOIN leased l ON true
LEFT JOIN statesvc.subscription s ON s.subscription_id = l.subscription_id
LEFT JOIN LATERAL (
    SELECT * FROM statesvc.notification o
    WHERE o.shipment_id = l.shipment_id AND o.sequence = l.sequence AND o.subscription_id = l.subscription_id LIMIT 1
) n ON true
LEFT JOIN LATERAL (
    SELECT * FROM statesvc.notification_gap o
    WHERE o.shipment_id = l.shipment_id AND o.sequence = l.sequence AND o.subscription_id = l.subscription_id LIMIT 1
) g ON true
LEFT JOIN LATERAL (SELECT o.sealed_key FROM statesvc.stream o WHERE o.shipment_id = l.shipment_id LIMIT 1) k ON true
LEFT JOIN LATERAL (
    SELECT o.shipment_id FROM statesvc.outbox o
    WHERE o.subscription_id = l.subscription_id AND o.shipment_id = l.shipment_id AND o.sequence <> l.sequence LIMIT 1
) f ON true;

-- name: release
-- Give back what these tokens still hold, uncharged (a notifier that shuts down).
UPDATE statesvc.outbox SET token = NULL, worker = NULL, available_at = statesvc.clock(), attempts = attempts - 1
WHERE token = ANY (%(tokens)b::uuid[]);

-- name: give_back
-- Give some of a claim back at once, uncharged: an answer that came meanwhile forbids to send them now.
UPDATE statesvc.outbox o SET token = NULL, worker = NULL, available_at = statesvc.clock(), attempts = o.attempts - 1
FROM unnest(%(subscription_ids)b::uuid[], %(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(subscription_id, shipment_id, sequence)
WHERE o.subscription_id = u.subscription_id AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence AND o.token = %(token)s::uuid;

-- name: next_due
-- Return the seconds until something may be claimed that may not yet: its backoff or lease ends, its subscription's pause ends or has a
-- token again. NULL: nothing waits for time. Subscriptions without a free permit are left out: what frees one, wakes.
WITH tick AS MATERIALIZED (
    SELECT statesvc.clock() AS at
), lane AS (
    SELECT s.subscription_id,
        greatest(t.at, k.not_before, h.not_before, h.spent_until + make_interval(secs => 1 / s.rate_per_second)) AS ready_at
    FROM statesvc.subscription s
    CROSS JOIN tick t
    LEFT JOIN unnest(%(known_ids)b::uuid[], %(frees)b::int[], %(not_befores)b::timestamptz[]) AS k(subscription_id, free, not_before)
        ON k.subscription_id = s.subscription_id
    LEFT JOIN statesvc.throttle h ON h.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NULL AND s.disabled_at IS NULL AND s.paused_at IS NULL AND coalesce(k.free > 0, true)
        AND NOT EXISTS (SELECT FROM statesvc.sealing_refusal)
)
SELECT (
    SELECT extract(epoch FROM min(greatest(d.available_at, l.ready_at)) - t.at)::float8
    FROM lane l
    CROSS JOIN LATERAL (SELECT CASE WHEN l.ready_at > t.at THEN '-infinity' ELSE t.at END AS after) w
    CROSS JOIN LATERAL (
        (SELECT o.available_at FROM statesvc.outbox o
        WHERE o.subscription_id = l.subscription_id AND o.attempts = 0 AND o.available_at > w.after ORDER BY o.available_at LIMIT 1)
        UNION ALL
        (SELECT o.available_at FROM statesvc.outbox o
        WHERE o.subscription_id = l.subscription_id AND o.attempts > 0 AND o.available_at > w.after ORDER BY o.available_at LIMIT 1)
    ) d
)
FROM tick t;
